// Package strictjson decodes JSON that strangers send. It takes one spelling of
// each document only: encoding/json alone accepts the same field twice, field
// names in any case and broken UTF-8, and so lets two programs read two things in
// one body. Every error names the field that it is about.
package strictjson

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// MaxDepth is how deep objects and lists may lie within one another.
const MaxDepth = 32

// Error says what is wrong with a document. It never holds what a string in it
// said.
type Error struct {
	Field  string // as in events[0].name; empty: the document as a whole
	Reason string
}

// Error gives the reason after the field.
func (e *Error) Error() string {
	if e.Field == "" {
		return e.Reason
	}
	return e.Field + ": " + e.Reason
}

// Decode reads one JSON document into v, a pointer. It refuses what is no JSON,
// broken UTF-8, more than MaxDepth levels, a field that comes twice, one that v
// does not have by this very name, and values of another type. null is the same
// as an absent field where that is a list, a map or a pointer; elsewhere it is
// refused. Fields that are absent keep what v has. The error is an *Error.
func Decode(b []byte, v any) error { return start(b, v, refuse) }

// DecodeKnown is Decode for documents of others, who may add fields when they like:
// those that v does not have are passed over.
func DecodeKnown(b []byte, v any) error { return start(b, v, ignore) }

// unknown says what to do with a field that is not there.
type unknown bool

const (
	refuse unknown = false
	ignore unknown = true
)

func start(b []byte, v any, u unknown) error {
	if err := check(b); err != nil {
		return err
	}
	return u.decode("", bytes.TrimSpace(b), reflect.ValueOf(v).Elem())
}

func (u unknown) decode(path string, raw json.RawMessage, v reflect.Value) error {
	switch kind := v.Kind(); {
	case string(raw) == "null":
		if kind != reflect.Pointer && kind != reflect.Slice && kind != reflect.Map && kind != reflect.Interface {
			return &Error{path, "null is nothing: leave the field out"}
		}
		v.SetZero()
		return nil
	case leaf(v.Type()):
		return scalar(path, raw, v)
	case kind == reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return u.decode(path, raw, v.Elem())
	case kind == reflect.Struct:
		return u.object(path, raw, v)
	case kind == reflect.Map:
		return u.entries(path, raw, v)
	default:
		return u.list(path, raw, v)
	}
}

// leaf reports whether a type is decoded in one piece: it has no fields of ours.
func leaf(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	if p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return true
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Pointer:
		return false
	case reflect.Slice:
		return t.Elem().Kind() == reflect.Uint8
	}
	return true
}

func scalar(path string, raw json.RawMessage, v reflect.Value) error {
	err := json.Unmarshal(raw, v.Addr().Interface())
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		what, _, _ := strings.Cut(wrong.Value, " ")
		return &Error{path, fmt.Sprintf("a %s came where %s belongs", what, wanted(v.Type()))}
	}
	return &Error{path, strings.TrimPrefix(err.Error(), "json: ")}
}

// wanted describes a type to people who do not write Go.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("a whole number of %d bits", t.Bits())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("a whole number, not negative, of %d bits", t.Bits())
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "another kind of value"
}

func (u unknown) object(path string, raw json.RawMessage, v reflect.Value) error {
	fields := names(v.Type())
	return members(path, raw, func(name string, value json.RawMessage) error {
		index, ok := fields[name]
		switch {
		case ok:
		case u == ignore:
			return nil
		default:
			return &Error{join(path, name), "no such field" + known(fields)}
		}
		return u.decode(join(path, name), value, v.FieldByIndex(index))
	})
}

// names gives the fields of a struct by their names in JSON.
func names(t reflect.Type) map[string][]int {
	out := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() || f.Anonymous && name == "":
		case name == "":
			out[f.Name] = f.Index
		default:
			out[name] = f.Index
		}
	}
	return out
}

func known(fields map[string][]int) string {
	if len(fields) == 0 {
		return ""
	}
	var all []string
	for name := range fields {
		all = append(all, name)
	}
	slices.Sort(all)
	return "; there are " + strings.Join(all, ", ")
}

func (u unknown) entries(path string, raw json.RawMessage, v reflect.Value) error {
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	return members(path, raw, func(name string, value json.RawMessage) error {
		key := reflect.New(v.Type().Key()).Elem()
		if err := scalar(join(path, name), quote(name), key); err != nil {
			return err
		}
		entry := reflect.New(v.Type().Elem()).Elem()
		if err := u.decode(join(path, name), value, entry); err != nil {
			return err
		}
		v.SetMapIndex(key, entry)
		return nil
	})
}

func quote(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		return nil // a string always marshals
	}
	return b
}

// members calls fn for each field of an object, in their order.
func members(path string, raw json.RawMessage, fn func(name string, value json.RawMessage) error) error {
	if raw[0] != '{' {
		return &Error{path, "an object belongs here, in braces"}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.Token() // the brace; check has seen that the whole is well formed
	for d.More() {
		name, _ := d.Token()
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return &Error{path, err.Error()}
		}
		if err := fn(name.(string), value); err != nil {
			return err
		}
	}
	return nil
}

// list decodes element by element only where that tells which one is wrong: a
// list of codes has a million of them.
func (u unknown) list(path string, raw json.RawMessage, v reflect.Value) error {
	if raw[0] != '[' {
		return &Error{path, "a list belongs here, in brackets"}
	}
	plain := leaf(v.Type().Elem())
	if plain && json.Unmarshal(raw, v.Addr().Interface()) == nil {
		return nil
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	d := json.NewDecoder(bytes.NewReader(raw))
	d.Token()
	for i := 0; d.More(); i++ {
		at := fmt.Sprintf("%s[%d]", path, i)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return &Error{at, err.Error()}
		}
		entry := reflect.New(v.Type().Elem()).Elem()
		if err := u.decode(at, value, entry); err != nil {
			return err
		}
		v.Set(reflect.Append(v, entry))
	}
	return nil
}

func join(path, name string) string {
	if len(name) > 64 {
		name = name[:64] + "…"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}
