package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// check holds a document to the rules that do not depend on what it should say.
func check(b []byte) error {
	if len(bytes.TrimSpace(b)) == 0 {
		return &Error{"", "a JSON object belongs here, and nothing came"}
	}
	if at := invalidUTF8(b); at >= 0 {
		return &Error{"", fmt.Sprintf("byte %d is not UTF-8", at)}
	}
	var whole json.RawMessage
	err := json.Unmarshal(b, &whole)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return &Error{"", fmt.Sprintf("not JSON at byte %d: %s", syntax.Offset, syntax)}
	case err != nil:
		return &Error{"", "not JSON"}
	}
	if at := loneSurrogate(b); at >= 0 {
		return &Error{"", fmt.Sprintf("byte %d begins half a character (a surrogate without the other)", at)}
	}
	return walk(b)
}

func invalidUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// loneSurrogate finds an escape like \ud800 that is not one of a pair: the
// library reads each of them as the same replacement character, so that different
// texts would be one.
func loneSurrogate(b []byte) int {
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		switch high(b[i:]) {
		case 'h':
			if high(b[i+6:]) != 'l' {
				return i
			}
			i += 11
		case 'l':
			return i
		default:
			i++ // the character that is escaped, which may be a backslash
		}
	}
	return -1
}

// high says whether an escape of four digits stands at the start: h for the first
// half of a pair, l for the second, 0 for anything else.
func high(b []byte) byte {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' || b[2]|0x20 != 'd' {
		return 0
	}
	switch c := b[3] | 0x20; {
	case c == '8' || c == '9' || c == 'a' || c == 'b':
		return 'h'
	case c >= 'c' && c <= 'f':
		return 'l'
	}
	return 0
}

// level is one object or list that the walk is in.
type level struct {
	object bool
	names  map[string]bool
	name   string // the field that the walk is at
	index  int    // of the element that the walk is at
	value  bool   // in an object: a name came, its value comes next
}

// walk looks at every level of a well-formed document: how deep, and that no
// field comes twice.
func walk(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var stack []level
	for {
		t, err := d.Token()
		if err != nil {
			return nil // the end: that the rest is well formed was seen before
		}
		if delim, ok := t.(json.Delim); ok && (delim == '}' || delim == ']') {
			stack = stack[:len(stack)-1]
			continue
		}
		if len(stack) > 0 {
			top := &stack[len(stack)-1]
			if name, ok := t.(string); ok && top.object && !top.value {
				if top.names[name] {
					return &Error{join(where(stack[:len(stack)-1]), name), "the field comes twice"}
				}
				top.names[name], top.name, top.value = true, name, true
				continue
			}
			top.value = false
			top.index++
		}
		if delim, ok := t.(json.Delim); ok {
			if len(stack) == MaxDepth {
				return &Error{where(stack), fmt.Sprintf("more than %d levels deep", MaxDepth)}
			}
			stack = append(stack, level{object: delim == '{', names: map[string]bool{}})
		}
	}
}

// where is the path of the value that the walk is at.
func where(stack []level) string {
	path := ""
	for _, l := range stack {
		if l.object {
			path = join(path, l.name)
		} else {
			path = fmt.Sprintf("%s[%d]", path, l.index-1)
		}
	}
	return path
}
