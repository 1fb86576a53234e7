package config

import (
	"bytes"
	"fmt"
	"os"

	"github.com/pelletier/go-toml/v2"
)

// Write writes a configuration as a program reads it: what holds its zero value
// is left to the default.
func Write[T Gate | Ledger](file string, c T) error {
	var b bytes.Buffer
	if err := toml.NewEncoder(&b).Encode(c); err != nil {
		return fmt.Errorf("encode configuration: %w", err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}
