package strictjson_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"admitone/internal/strictjson"
)

type inner struct {
	Name string `json:"name"`
	N    uint8  `json:"n,omitempty"`
}

type doc struct {
	ID    string           `json:"id"`
	Count int              `json:"count"`
	Flag  *bool            `json:"flag"`
	When  time.Time        `json:"when"`
	List  []inner          `json:"list"`
	Times []time.Time      `json:"times"`
	Map   map[string]inner `json:"map"`
	Raw   json.RawMessage  `json:"raw"`
	inner
	Plain  float64
	Hidden string `json:"-"`
}

func TestDecode(t *testing.T) {
	yes := true
	got := doc{Count: 7}
	err := strictjson.Decode([]byte(` {"id":"é\ud83d\ude00\\ud800","flag":true,"list":[{"name":"a","n":255}],"map":{"k":{"name":"b"}},
		"when":"2027-01-15T00:00:00Z","times":["2027-01-15T00:00:00Z"],"raw":{"any":[1]},"Plain":1.5} `), &got)
	at := time.Date(2027, 1, 15, 0, 0, 0, 0, time.UTC)
	want := doc{ID: "é😀\\ud800", Count: 7, Flag: &yes, When: at, List: []inner{{"a", 255}}, Times: []time.Time{at},
		Map: map[string]inner{"k": {Name: "b"}}, Raw: json.RawMessage(`{"any":[1]}`), Plain: 1.5}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if err := strictjson.Decode([]byte(`{"list":null,"flag":null,"map":null}`), &got); err != nil || got.List != nil || got.Flag != nil || got.Map != nil {
		t.Errorf("null: %+v, %v, want that it is as if absent", got, err)
	}
}

// TestDecodeKnown: what others add is passed over, and checked all the same.
func TestDecodeKnown(t *testing.T) {
	var got doc
	err := strictjson.DecodeKnown([]byte(`{"new":{"a":[1]},"id":"x","list":[{"name":"a","more":null}]}`), &got)
	if err != nil || got.ID != "x" || len(got.List) != 1 || got.List[0].Name != "a" {
		t.Errorf("got %+v, %v", got, err)
	}
	for body, field := range map[string]string{`{"new":{"a":1,"a":2}}`: "new.a", `{"ID":"x","id":1}`: "id", "{\"new\":\"\xff\"}": ""} {
		var e *strictjson.Error
		if err := strictjson.DecodeKnown([]byte(body), new(doc)); !errors.As(err, &e) || e.Field != field {
			t.Errorf("%q: %v, want field %q", body, err, field)
		}
	}
}

// TestEveryErrorNamesItsField: what is wrong is named by its path, and none of
// the texts of the document is in the error.
func TestEveryErrorNamesItsField(t *testing.T) {
	deep := strings.Repeat(`{"a":`, strictjson.MaxDepth+1) + "1" + strings.Repeat("}", strictjson.MaxDepth+1)
	for body, want := range map[string][2]string{
		``:                                     {"", "nothing came"},
		"  \n":                                 {"", "nothing came"},
		`{`:                                    {"", "not JSON at byte 1"},
		`{"id":"x"}}`:                          {"", "not JSON at byte 11"},
		`{"id":"x",}`:                          {"", "not JSON"},
		`[]`:                                   {"", "an object belongs here"},
		`null`:                                 {"", "null"},
		"{\"id\":\"\xff\"}":                    {"", "byte 7 is not UTF-8"},
		`{"id":"\ud800"}`:                      {"", "byte 7 begins half a character"},
		`{"id":"\uDC00"}`:                      {"", "byte 7 begins half a character"},
		`{"id":"\ud800\ud800"}`:                {"", "byte 7 begins half a character"},
		`{"id":1}`:                             {"id", "a number came where a string belongs"},
		`{"ID":"x"}`:                           {"ID", "no such field; there are Plain, count, flag, id"},
		`{"id":"x","id":"y"}`:                  {"id", "comes twice"},
		`{"id":"x","\u0069d":"y"}`:             {"id", "comes twice"},
		`{"count":1.5}`:                        {"count", "whole number"},
		`{"count":"1"}`:                        {"count", "a string came"},
		`{"count":99999999999999999999}`:       {"count", "whole number of 64 bits"},
		`{"count":null}`:                       {"count", "leave the field out"},
		`{"flag":"secret-text"}`:               {"flag", "true or false"},
		`{"when":"tomorrow"}`:                  {"when", "time"},
		`{"list":[{"name":"a"},{"nom":"b"}]}`:  {"list[1].nom", "no such field"},
		`{"list":[{"name":"a","n":256}]}`:      {"list[0].n", "8 bits"},
		`{"list":[{"name":"a","name":"b"}]}`:   {"list[0].name", "comes twice"},
		`{"list":{"name":"a"}}`:                {"list", "a list belongs here"},
		`{"list":[[]]}`:                        {"list[0]", "an object belongs here"},
		`{"times":["2027-01-15T00:00:00Z",5]}`: {"times[1]", ""},
		`{"map":{"k":{"x":1}}}`:                {"map.k.x", "no such field"},
		`{"raw":{"a":[0,{"b":1,"b":2}]}}`:      {"raw.a[1].b", "comes twice"},
		`{"Hidden":"x"}`:                       {"Hidden", "no such field"},
		deep:                                   {strings.TrimPrefix(strings.Repeat(".a", strictjson.MaxDepth), "."), "levels deep"},
	} {
		err := strictjson.Decode([]byte(body), new(doc))
		var e *strictjson.Error
		if !errors.As(err, &e) || e.Field != want[0] || !strings.Contains(e.Reason, want[1]) {
			t.Errorf("%.60q: got %v, want field %q and %q", body, err, want[0], want[1])
		}
		if err != nil && strings.Contains(err.Error(), "secret-text") {
			t.Errorf("%q: the error tells a text of the document: %v", body, err)
		}
	}
}

// FuzzDecode: what is accepted reads the same through the library and after it was
// written again; nothing panics.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"id":"x","list":[{"name":"a"}]}`, `{"raw":{"a":[1,2,{"b":null}]}}`, `{"id":"\ud83d\ude00"}`, `[[[[`, `{"map":{"":{}}}`, `{"a":`, "{\"\xff\":1}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var got doc
		if strictjson.Decode(b, &got) != nil {
			return
		}
		var loose, again doc
		if err := json.Unmarshal(b, &loose); err != nil {
			t.Fatalf("accepted %q, which is refused by the library: %v", b, err)
		}
		if !reflect.DeepEqual(loose, got) && !strings.Contains(string(b), "null") {
			t.Fatalf("%q reads as %+v, and as %+v through the library", b, got, loose)
		}
		out, err := json.Marshal(got)
		if err != nil {
			return // a time beyond what can be written
		}
		if err := strictjson.Decode(out, &again); err != nil {
			t.Fatalf("%q, written as %q, is refused: %v", b, out, err)
		}
	})
}
