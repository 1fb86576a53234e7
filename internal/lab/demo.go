package lab

import (
	"context"
	"io"
)

func demo(ctx context.Context, stdout, stderr io.Writer) error { return nil }
