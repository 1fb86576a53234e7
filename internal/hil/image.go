package hil

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Content is a file of a board's initial file system.
type Content struct {
	Mode int
	Data []byte
}

// vivid is the kernel's virtual camera: one HDMI input, video 0, one HDMI output,
// video 1, which the camera sees when it is told to.
const vivid = "vivid num_inputs=1 input_types=0x3 num_outputs=1 output_types=0x1 node_types=0x101"

// BuildGo builds a command of this module for a board, without C.
func BuildGo(ctx context.Context, b Board, pkg, out string) error {
	env := append([]string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + b.GoArch}, b.Env...)
	if _, err := command(ctx, "", env, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", out, pkg); err != nil {
		return fmt.Errorf("build %s for %s: %w", pkg, b.Name, err)
	}
	return nil
}

// Image writes a board's initial file system below dir and gives its path: our
// programs, the modules of the virtual camera, and files. It is not compressed: an
// emulated processor would take longer to unpack it than the host to read it.
func Image(ctx context.Context, dir string, b Board, k Kernel, files map[string]Content) (string, error) {
	var a archive
	for _, d := range []string{"proc", "sys", "dev", "run", "tmp", "log", "data"} {
		a.dir(d)
	}
	for name, pkg := range map[string]string{"init": "admitone/internal/hil/guest", "gated": "admitone/cmd/gated"} {
		out := b.workFile(dir, name)
		if err := BuildGo(ctx, b, pkg, out); err != nil {
			return "", err
		}
		data, err := os.ReadFile(out)
		if err != nil {
			return "", fmt.Errorf("read program: %w", err)
		}
		a.file(name, 0o755, data)
	}
	name, params, _ := strings.Cut(vivid, " ")
	modules, err := modulesFor(k, name)
	if err != nil {
		return "", err
	}
	var list strings.Builder
	for _, m := range modules {
		a.file("modules.d/"+m.name+".ko", 0o644, m.data)
		fmt.Fprintf(&list, "/modules.d/%s.ko", m.name)
		if m.name == name {
			fmt.Fprintf(&list, " %s", params)
		}
		list.WriteByte('\n')
	}
	a.file("modules", 0o644, []byte(list.String()))
	for name, c := range files {
		a.file(name, c.Mode, c.Data)
	}
	path := filepath.Join(dir, b.Name+"-initrd")
	if err := os.WriteFile(path, a.bytes(), 0o644); err != nil {
		return "", fmt.Errorf("write image: %w", err)
	}
	return path, nil
}
