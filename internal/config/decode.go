package config

import (
	"encoding"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// maxFile bounds a configuration file, so that a wrong path (a device, a log)
// is a problem and not an out-of-memory.
const maxFile = 1 << 20

// defaulter is a table with defaults; a missing key keeps what it sets.
type defaulter interface{ setDefaults() }

// choice is a string that must be one of a list.
type choice interface{ allowed() []string }

// decode reads a TOML file into dst. The library stops at the first value of a
// wrong type; this walk over its untyped tree goes on, so that all problems are
// told at once.
func decode(file string, dst defaulter) *report {
	dst.setDefaults()
	return decodeTree(file, dst, func(b []byte) (map[string]any, bool, error) {
		tree, err := tomlTree(b)
		return tree, false, err
	})
}

// decodeTree reads a file into dst, a pointer to a struct, by way of the untyped
// tree that parse makes of it. The tree of JSON has its times as strings.
func decodeTree(file string, dst any, parse func([]byte) (tree map[string]any, json bool, err error)) *report {
	r := &report{file: file, dir: filepath.Dir(file)}
	b, err := readFile(file)
	var tree map[string]any
	if err == nil {
		tree, r.json, err = parse(b)
	}
	if err != nil {
		r.unread = true
		r.add("", err.Error(), "")
		return r
	}
	r.table("", tree, reflect.ValueOf(dst).Elem())
	return r
}

func tomlTree(b []byte) (tree map[string]any, err error) {
	err = toml.Unmarshal(b, &tree)
	var de *toml.DecodeError
	if errors.As(err, &de) {
		row, col := de.Position()
		return nil, fmt.Errorf("line %d, column %d: %s", row, col, strings.TrimPrefix(de.Error(), "toml: "))
	}
	return tree, err
}

func readFile(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		var pe *os.PathError
		if errors.As(err, &pe) {
			return nil, pe.Err
		}
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	if len(b) > maxFile {
		return nil, fmt.Errorf("more than %d bytes: this is not a configuration file", maxFile)
	}
	return b, nil
}

// table fills a struct from a TOML table.
func (r *report) table(path string, t map[string]any, v reflect.Value) {
	fields := keys(v.Type())
	names := make([]string, 0, len(t))
	for name := range t {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if i, ok := fields[name]; ok {
			r.value(join(path, name), t[name], v.Field(i))
			continue
		}
		r.add(join(path, name), "unknown key", suggest(name, fields))
	}
}

// keys gives the fields of a struct by their TOML names.
func keys(t reflect.Type) map[string]int {
	m := map[string]int{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("toml"), ",")
		if name != "" && name != "-" {
			m[name] = i
		}
	}
	return m
}

func (r *report) value(path string, x any, v reflect.Value) {
	switch dst := v.Addr().Interface().(type) {
	case encoding.TextUnmarshaler:
		if xv := reflect.ValueOf(x); xv.Type() == v.Type() { // a TOML date
			v.Set(xv)
			return
		}
		if t, ok := dst.(*time.Time); ok {
			r.time(path, x, t)
			return
		}
		r.text(path, x, dst)
		return
	case choice:
		if s, ok := x.(string); !ok || !slices.Contains(dst.allowed(), s) {
			r.addf(path, "write one of "+quoted(dst.allowed()), "%s is not one of the choices", show(x))
			return
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		r.value(path, x, v.Elem())
	case reflect.Struct:
		r.structure(path, x, v)
	case reflect.Slice:
		r.slice(path, x, v)
	case reflect.Map:
		r.entries(path, x, v)
	default:
		r.scalar(path, x, v)
	}
}

// time reads what TOML did not give as a time itself: JSON has them as strings.
func (r *report) time(path string, x any, dst *time.Time) {
	if !r.json {
		r.addf(path, "write it as in 2026-11-30T18:00:00Z, without quotes", "%s is not a time", show(x))
		return
	}
	s, _ := x.(string)
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		r.addf(path, "write it as in \"2026-11-30T18:00:00Z\"", "%s is not a time", show(x))
		return
	}
	*dst = t
}

func (r *report) text(path string, x any, dst encoding.TextUnmarshaler) {
	s, ok := x.(string)
	if !ok {
		s = fmt.Sprint(x)
	}
	if err := dst.UnmarshalText([]byte(s)); err != nil {
		wrong, right, _ := strings.Cut(err.Error(), "; ")
		r.add(path, wrong, right)
	} else if !ok {
		r.addf(path, "write it in quotes", "%s is not a string", show(x))
	}
}

func (r *report) structure(path string, x any, v reflect.Value) {
	t, ok := x.(map[string]any)
	if !ok {
		r.addf(path, "write it as a table: ["+path+"]", "%s is not a table", show(x))
		return
	}
	if d, ok := v.Addr().Interface().(defaulter); ok {
		d.setDefaults()
	}
	r.table(path, t, v)
}

func (r *report) slice(path string, x any, v reflect.Value) {
	list, ok := x.([]any)
	if !ok {
		right := "write a list: [\"…\", \"…\"]"
		if v.Type().Elem().Kind() == reflect.Struct {
			right = "write it in double brackets: [[" + path + "]]"
		}
		r.addf(path, right, "%s is not a list", show(x))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(list), len(list)))
	for i, item := range list {
		r.value(fmt.Sprintf("%s[%d]", path, i), item, v.Index(i))
	}
}

// entries fills a map whose keys are its own.
func (r *report) entries(path string, x any, v reflect.Value) {
	t, ok := x.(map[string]any)
	if !ok {
		r.addf(path, "write it as a table: { name = …, name = … }", "%s is not a table", show(x))
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, name := range slices.Sorted(maps.Keys(t)) {
		item, problems := reflect.New(v.Type().Elem()).Elem(), len(r.list)
		r.value(join(path, name), t[name], item)
		if len(r.list) == problems {
			v.SetMapIndex(reflect.ValueOf(name), item)
		}
	}
}

func (r *report) scalar(path string, x any, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if s, ok := x.(string); ok {
			v.SetString(s)
			return
		}
		r.addf(path, "write it in quotes", "%s is not a string", show(x))
	case reflect.Bool:
		if b, ok := x.(bool); ok {
			v.SetBool(b)
			return
		}
		r.addf(path, "write true or false", "%s is not true or false", show(x))
	case reflect.Uint64:
		if n, ok := x.(int64); ok && n >= 0 {
			v.SetUint(uint64(n))
			return
		}
		r.addf(path, "write a whole number, 0 or more", "%s is not one", show(x))
	default: // int; TestEveryFieldDecodes holds the structs to these kinds
		if n, ok := x.(int64); ok && !v.OverflowInt(n) {
			v.SetInt(n)
			return
		}
		r.addf(path, "write a whole number", "%s is not a whole number", show(x))
	}
}

// show gives a value as a person would recognise it, on one line and short.
func show(x any) string {
	switch x := x.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "a table"
	case []any:
		return "a list"
	case string:
		if len(x) > 60 {
			x = x[:60] + "…"
		}
		return fmt.Sprintf("%q", x)
	}
	return fmt.Sprint(x)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func quoted(ss []string) string {
	q := make([]string, len(ss))
	for i, s := range ss {
		q[i] = fmt.Sprintf("%q", s)
	}
	return strings.Join(q, ", ")
}
