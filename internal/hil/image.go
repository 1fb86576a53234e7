package hil

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// Content is a file of a board's initial file system.
type Content struct {
	Mode int
	Data []byte
}

// modules are the kernel's virtual devices, with their parameters: a camera with
// one HDMI input, video 0, and one HDMI output, video 1, which it sees when it is
// told to; and whatever a program plays as a keyboard.
func modules() []string {
	return []string{"vivid num_inputs=1 input_types=0x3 num_outputs=1 output_types=0x1 node_types=0x101", "evdev", "uinput"}
}

// goTool builds for a board, without C.
func (b Board) goTool(ctx context.Context, argv ...string) error {
	env := append([]string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + b.GoArch}, b.Env...)
	if _, err := command(ctx, "", env, append([]string{"go"}, argv...)...); err != nil {
		return fmt.Errorf("build for %s: %w", b.Name, err)
	}
	return nil
}

// Image writes a board's initial file system below dir and gives its path: our
// programs, the tests with the tag hil of some packages as PACKAGE.test, modules,
// and files. It is not compressed: an emulated processor would take longer to
// unpack it than the host to read it.
func Image(ctx context.Context, dir string, b Board, k Kernel, files map[string]Content, tests ...string) (string, error) {
	var a archive
	for _, d := range []string{"proc", "sys", "dev", "run", "tmp", "log", "data"} {
		a.dir(d)
	}
	flags := []string{"-trimpath", "-ldflags", "-s -w", "-o"}
	builds := map[string][]string{
		"init":  slices.Concat([]string{"build"}, flags, []string{b.workFile(dir, "init"), "admitone/internal/hil/guest"}),
		"gated": slices.Concat([]string{"build"}, flags, []string{b.workFile(dir, "gated"), "admitone/cmd/gated"}),
	}
	for _, pkg := range tests {
		name := path.Base(pkg) + ".test"
		builds[name] = slices.Concat([]string{"test", "-c", "-tags", "hil", "-vet=off"}, flags, []string{b.workFile(dir, name), pkg})
	}
	for name, argv := range builds {
		if err := b.goTool(ctx, argv...); err != nil {
			return "", err
		}
		data, err := os.ReadFile(b.workFile(dir, name))
		if err != nil {
			return "", fmt.Errorf("read program: %w", err)
		}
		a.file(name, 0o755, data)
	}
	if err := a.modules(k); err != nil {
		return "", err
	}
	for name, c := range files {
		a.file(name, c.Mode, c.Data)
	}
	out := b.workFile(dir, "initrd")
	if err := os.WriteFile(out, a.bytes(), 0o644); err != nil {
		return "", fmt.Errorf("write image: %w", err)
	}
	return out, nil
}

// modules adds the kernel's modules, and the list that the board loads them by.
func (a *archive) modules(k Kernel) error {
	params := map[string]string{}
	var names []string
	for _, m := range modules() {
		name, p, _ := strings.Cut(m, " ")
		params[name] = p
		names = append(names, name)
	}
	found, err := modulesFor(k, names...)
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, m := range found {
		a.file("modules.d/"+m.name+".ko", 0o644, m.data)
		fmt.Fprintf(&list, "/modules.d/%s.ko %s\n", m.name, params[m.name])
	}
	a.file("modules", 0o644, []byte(list.String()))
	return nil
}
