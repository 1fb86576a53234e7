package config

import (
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// TestEveryFieldDecodes holds the configuration's structs to the kinds that the
// walk over the tree knows: a field of another kind would be set wrongly.
func TestEveryFieldDecodes(t *testing.T) {
	var walk func(path string, typ reflect.Type)
	walk = func(path string, typ reflect.Type) {
		if typ == reflect.TypeFor[time.Time]() || typ == reflect.TypeFor[Duration]() || typ == reflect.TypeFor[Size]() {
			return
		}
		switch typ.Kind() {
		case reflect.Struct:
			for i := range typ.NumField() {
				f := typ.Field(i)
				if f.Tag.Get("toml") == "" {
					t.Errorf("%s.%s has no name in TOML", path, f.Name)
				} else if f.Tag.Get("toml") != "-" {
					walk(path+"."+f.Name, f.Type)
				}
			}
		case reflect.Slice, reflect.Pointer, reflect.Map:
			walk(path, typ.Elem())
		case reflect.String, reflect.Bool, reflect.Int:
		default:
			t.Errorf("%s is a %s, which no TOML value is decoded to", path, typ)
		}
	}
	for _, v := range []any{Gate{}, Ledger{}, Enrolment{}} {
		walk(reflect.TypeOf(v).Name(), reflect.TypeOf(v))
	}
}

func enrolment(t *testing.T) Enrolment {
	return Enrolment{
		Seed: seed(t), Place: "North 2", Brokers: []string{"tls://192.0.2.1:4222"},
		BrokerKeys: []string{strings.Repeat("ab", 32)}, ProgrammeKey: strings.Repeat("cd", 32),
		Issued: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
	}
}

// TestWrittenIsRead: what a program writes with these structs, Load reads back
// unchanged, with the defaults for what was left out.
func TestWrittenIsRead(t *testing.T) {
	dir := t.TempDir()
	e := enrolment(t)
	if err := WriteEnrolment(filepath.Join(dir, "e"), e); err != nil {
		t.Fatal(err)
	}
	g := Gate{Enrolment: "e", RunDir: "/tmp/run", Amnesia: AmnesiaWait, Rearm: ms(1250), MaxSize: 64 << 20, Lanes: []Lane{{
		PassageTimeout: ms(7000), Turnstile: Turnstile{Driver: "sim", File: "t", Inputs: []string{PassageIn}, Passage: "never"},
		Readers: []Reader{{Path: "line"}}, Camera: &Camera{Dir: "/frames", FPS: 5},
	}}}
	b, err := toml.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "g"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := LoadGate(filepath.Join(dir, "g"))
	if err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	want := Gate{
		Enrolment: filepath.Join(dir, "e"), Device: e, DataDir: "/var/lib/gated", RunDir: "/tmp/run", Control: "/tmp/run/control.sock",
		Offline: Admit, LedgerPatience: ms(400), PeerPatience: ms(50), UntrustedClock: Admit, Amnesia: AmnesiaWait,
		AmnesiaWait: ms(60_000), Rearm: ms(1250), FireWithin: ms(10_000), MaxSize: 64 << 20,
		Lanes: []Lane{{
			Name: "1", PassageTimeout: ms(7000), OnNoPassage: Annul, LatePassage: ms(30_000), Credits: 1, ReleaseTime: ms(5000),
			Turnstile: Turnstile{
				Driver: "sim", File: filepath.Join(dir, "t"), Release: ReleasePulse, Pulse: ms(500), Gap: ms(300), Debounce: ms(20), MaxOn: ms(15_000),
				Inputs: []string{PassageIn}, Passage: "never",
			},
			Readers: []Reader{{Driver: "line", Path: filepath.Join(dir, "line")}},
			Camera:  &Camera{Driver: "folder", Dir: "/frames", FPS: 5},
		}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got.Device.Plain() || !(Enrolment{Brokers: []string{"nats://127.0.0.1:4222"}}).Plain() {
		t.Error("Plain takes TLS for none, or the other way round")
	}
	if !got.Lanes[0].Sensor() {
		t.Error("passage_in is wired, and Sensor says no")
	}
}

func TestSecretsAreNeitherPrintedNorOverwritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "e")
	e := enrolment(t)
	e.Seed = e.Seed[:len(e.Seed)-1] + "!"
	if err := WriteEnrolment(file, e); err != nil {
		t.Fatal(err)
	}
	_, err := LoadEnrolment(file)
	if err == nil || strings.Contains(err.Error(), e.Seed[:10]) {
		t.Errorf("got %v, want a problem without the seed", err)
	}
	if err := WriteEnrolment(file, enrolment(t)); !errors.Is(err, os.ErrExist) {
		t.Errorf("got %v, want that the file exists", err)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v, want 0600", st.Mode(), err)
	}
}

func TestKeyFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "k")
	made, err := EnsureKey(file)
	if err != nil {
		t.Fatal(err)
	}
	again, err := EnsureKey(file)
	if err != nil || !made.Equal(again) {
		t.Errorf("the second start got another key, %v", err)
	}
	if err := WriteKey(file, made); !errors.Is(err, os.ErrExist) {
		t.Errorf("got %v, want that the file exists", err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty": "", "cut": string(b[:len(b)/2]), "two": string(b) + string(b),
		"other": strings.ReplaceAll(string(b), "PRIVATE", "PUBLIC"), "junk": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
	} {
		bad := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(bad, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if k, err := EnsureKey(bad); err == nil {
			t.Errorf("%s: got a key %v", name, k.Public().(ed25519.PublicKey))
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]Size{"0B": 0, "17B": 17, "512MB": 512e6, "512 MB": 512e6, "1GB": 1e9, "64MiB": 64 << 20, "2TB": 2e12} {
		var got Size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, err, want)
		}
		var back Size
		if err := back.UnmarshalText([]byte(want.String())); err != nil || back != want {
			t.Errorf("%s: %s reads back as %d, %v", text, want, back, err)
		}
	}
	for _, text := range []string{"", "512", "MB", "-1MB", "1.5GB", "99999999999TB", "1mb", "0x10MB"} {
		var got Size
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%s: got %d, want an error", text, got)
		}
	}
}

func TestHugeFileIsNoConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "huge")
	if err := os.WriteFile(file, make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadGate(file); err == nil || !strings.Contains(err.Error(), "not a configuration file") {
		t.Errorf("got %v", err)
	}
}
