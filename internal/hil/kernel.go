package hil

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Kernel is a Debian kernel, unpacked.
type Kernel struct {
	Dir     string // of the package's root
	Version string // as uname -r gives it there
}

// Image is the kernel itself.
func (k Kernel) Image() string { return filepath.Join(k.Dir, "boot", "vmlinuz-"+k.Version) }

// DeviceTree gives the path of a board's device tree.
func (k Kernel) DeviceTree(name string) string {
	return filepath.Join(k.Dir, "usr", "lib", "linux-image-"+k.Version, name)
}

func (k Kernel) modules() string { return filepath.Join(k.Dir, "lib", "modules", k.Version) }

// FetchKernel gets the newest kernel that a package of Debian's stands for
// (linux-image-arm64, say) and unpacks it below dir, once. Debian removes old point
// versions from its archive, so no version is written down here. The state of apt
// is a private one: the machine's own knows nothing of another architecture.
func FetchKernel(ctx context.Context, dir, arch, meta string) (Kernel, error) {
	root := filepath.Join(dir, "kernel-"+arch)
	if k, err := findKernel(root); err == nil {
		return k, nil
	}
	a, err := newApt(filepath.Join(dir, "apt-"+arch), arch)
	if err != nil {
		return Kernel{}, fmt.Errorf("fetch %s: %w", meta, err)
	}
	deb, err := a.fetch(ctx, meta)
	if err != nil {
		return Kernel{}, fmt.Errorf("fetch %s: %w", meta, err)
	}
	part := root + ".part"
	if err := os.RemoveAll(part); err != nil {
		return Kernel{}, fmt.Errorf("fetch %s: %w", meta, err)
	}
	if _, err := command(ctx, dir, nil, "dpkg-deb", "--extract", deb, part); err != nil {
		return Kernel{}, fmt.Errorf("fetch %s: %w", meta, err)
	}
	if err := errors.Join(os.Rename(part, root), os.RemoveAll(a.dir)); err != nil {
		return Kernel{}, fmt.Errorf("fetch %s: %w", meta, err)
	}
	return findKernel(root)
}

func findKernel(root string) (Kernel, error) {
	found, err := filepath.Glob(filepath.Join(root, "lib", "modules", "*"))
	if err != nil || len(found) != 1 {
		return Kernel{}, fmt.Errorf("%s holds no kernel", root)
	}
	return Kernel{Dir: root, Version: filepath.Base(found[0])}, nil
}

// apt is a package state of its own for one architecture.
type apt struct {
	dir, arch string
}

func newApt(dir, arch string) (apt, error) {
	a := apt{dir: dir, arch: arch}
	for _, d := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return a, err
		}
	}
	conf := fmt.Sprintf("APT::Architecture %q;\nAPT::Architectures { %q; };\nDir::State::lists %q;\nDir::State::status %q;\nDir::Cache %q;\n"+
		"APT::Sandbox::User %q;\nAcquire::Languages \"none\";\nAcquire::Retries \"3\";\n",
		arch, arch, filepath.Join(dir, "lists"), filepath.Join(dir, "status"), filepath.Join(dir, "cache"), "root")
	return a, errors.Join(os.WriteFile(filepath.Join(dir, "status"), nil, 0o644), os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o644))
}

func (a apt) run(ctx context.Context, argv ...string) (string, error) {
	return command(ctx, a.dir, []string{"APT_CONFIG=" + filepath.Join(a.dir, "conf")}, argv...)
}

var dependsOnImage = regexp.MustCompile(`Depends: (linux-image-[0-9]\S*)`)

// fetch gives the path of the package that meta depends on. Where an index does not
// come, as while a mirror is being renewed, the others may do.
func (a apt) fetch(ctx context.Context, meta string) (string, error) {
	_, updated := a.run(ctx, "apt-get", "update", "-q")
	depends, err := a.run(ctx, "apt-cache", "depends", meta)
	m := dependsOnImage.FindStringSubmatch(depends)
	if err != nil || m == nil {
		return "", errors.Join(updated, err, fmt.Errorf("%s names no kernel in %q", meta, depends))
	}
	if _, err := a.run(ctx, "apt-get", "download", "-q", m[1]); err != nil {
		return "", errors.Join(updated, err)
	}
	found, err := filepath.Glob(filepath.Join(a.dir, m[1]+"_*.deb"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("no package of %s came: %w", m[1], err)
	}
	return found[0], nil
}

// command runs a program and gives its output; the error has it, too.
func command(ctx context.Context, dir string, env []string, argv ...string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}
