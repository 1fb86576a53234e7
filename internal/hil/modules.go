package hil

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// module is a kernel module to load, with its parameters.
type module struct {
	name string
	data []byte
}

// modulesFor gives modules and what they depend on, in the order of loading. A
// module says itself what it depends on, in its section .modinfo (kmod's depmod
// reads the same). What is built in needs no loading.
func modulesFor(k Kernel, names ...string) ([]module, error) {
	r, err := newResolver(k)
	if err != nil {
		return nil, fmt.Errorf("find modules of %s: %w", k.Version, err)
	}
	for _, n := range names {
		if err := r.add(n); err != nil {
			return nil, fmt.Errorf("find modules of %s: %w", k.Version, err)
		}
	}
	return r.out, nil
}

type resolver struct {
	files   map[string]string // name -> path
	builtin string
	done    map[string]bool
	out     []module
}

// moduleName gives the name of a module's file: modules are named with dashes
// and underscores alike.
func moduleName(file string) string {
	return strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".ko"), "-", "_")
}

func newResolver(k Kernel) (*resolver, error) {
	r := &resolver{files: map[string]string{}, done: map[string]bool{}}
	b, err := os.ReadFile(filepath.Join(k.modules(), "modules.builtin"))
	if err != nil {
		return nil, err
	}
	r.builtin = strings.ReplaceAll(string(b), "-", "_")
	return r, filepath.WalkDir(k.modules(), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".ko") {
			r.files[moduleName(path)] = path
		}
		return err
	})
}

func (r *resolver) add(name string) error {
	name = moduleName(name)
	if r.done[name] || strings.Contains(r.builtin, "/"+name+".ko\n") {
		return nil
	}
	path, ok := r.files[name]
	if !ok {
		return fmt.Errorf("there is no module %s", name)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	depends, err := dependsOf(data)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	for _, d := range depends {
		if err := r.add(d); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	r.done[name] = true
	r.out = append(r.out, module{name, data})
	return nil
}

func dependsOf(ko []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(ko))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := f.Section(".modinfo")
	if s == nil {
		return nil, fmt.Errorf("no section .modinfo")
	}
	info, err := s.Data()
	if err != nil {
		return nil, err
	}
	for _, field := range strings.Split(string(info), "\x00") {
		if list, ok := strings.CutPrefix(field, "depends="); ok && list != "" {
			return strings.Split(list, ","), nil
		}
	}
	return nil, nil
}
