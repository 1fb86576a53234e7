package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// LoadDocument reads a file of TOML, or of JSON where it begins with a brace,
// into a struct with toml tags; both have the same keys. Then it calls check,
// which may be nil: each of its joined errors is "KEY: WRONG", and is told with
// all others. An error is of type Problems.
func LoadDocument(file string, dst any, check func() error) error {
	r := decodeTree(file, dst, func(b []byte) (map[string]any, bool, error) {
		if bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) {
			tree, err := jsonTree(b)
			return tree, true, err
		}
		tree, err := tomlTree(b)
		return tree, false, err
	})
	if r.unread || check == nil {
		return r.err()
	}
	for _, err := range split(check()) {
		key, wrong, found := strings.Cut(err.Error(), ": ")
		if !found {
			key, wrong = "", err.Error()
		}
		r.add(key, wrong, "")
	}
	return r.err()
}

// split gives the errors that were joined.
func split(err error) []error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// jsonTree reads JSON as TOML is read: a key that is there twice is an error.
// Whole numbers are int64.
func jsonTree(b []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	v, err := jsonValue(d, 0)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			err = errors.New("something stands after the object")
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it ends within the object")
	}
	if err != nil {
		line := 1 + bytes.Count(b[:min(int(d.InputOffset()), len(b))], []byte("\n"))
		return nil, fmt.Errorf("line %d: %w", line, err)
	}
	tree, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("no JSON object")
	}
	return tree, nil
}

// maxDepth is far above what any document has, and keeps the stack small.
const maxDepth = 32

func jsonValue(d *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errors.New("too many brackets within brackets")
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '[' {
			return jsonList(d, depth)
		}
		return jsonObject(d, depth)
	case json.Number:
		if n, err := t.Int64(); err == nil {
			return n, nil
		}
		return t.Float64()
	}
	return t, nil
}

func jsonList(d *json.Decoder, depth int) (any, error) {
	list := []any{}
	for d.More() {
		v, err := jsonValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := d.Token()
	return list, err
}

func jsonObject(d *json.Decoder, depth int) (any, error) {
	object := map[string]any{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := key.(string) // the decoder lets nothing else stand there
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("%q is there twice", name)
		}
		if object[name], err = jsonValue(d, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return object, err
}
