package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Driver names what keeps the ledger's tables.
type Driver string

// The two drivers.
const (
	DriverBolt     Driver = "bolt"     // a file in the data folder; one process
	DriverPostgres Driver = "postgres" // a database; any number of processes
)

func (Driver) allowed() []string { return []string{string(DriverBolt), string(DriverPostgres)} }

// Store is where the ledger's tables are.
type Store struct {
	Driver Driver `toml:"driver,omitempty"` // default bolt

	// URL names the database: postgres://USER:PASSWORD@HOST:PORT/NAME. It is a secret
	// and stands in no message. Once loaded it is what URLFile holds, where that is
	// set.
	URL         string `toml:"url,omitempty"`
	URLFile     string `toml:"url_file,omitempty"`    // a file, mode 0600, with the URL; or write url
	Connections int    `toml:"connections,omitempty"` // how many at most; default 16
}

func (s *Store) setDefaults() { *s = Store{Driver: DriverBolt, Connections: 16} }

// maxConnections is far beyond what a database serves well.
const maxConnections = 500

func (l *Ledger) checkStore(r *report) {
	s := &l.Store
	if s.Driver == DriverBolt {
		const wrong, right = "driver bolt has no database", `remove it, or set store.driver to "postgres"`
		r.absent("store.url", s.URL != "", wrong, right)
		r.absent("store.url_file", s.URLFile != "", wrong, right)
		return
	}
	s.locate(r, l.File)
	if s.Connections < 2 || s.Connections > maxConnections {
		r.addf("store.connections", fmt.Sprintf("write 2 to %d", maxConnections), "%d is too few or too many", s.Connections)
	}
	if l.named == "" {
		r.add("programme_key", "missing: the processes on one database sign with one key", "make one with `gatectl key new` and give it to each")
	}
}

// locate finds the URL; file is the one that may have it.
func (s *Store) locate(r *report, file string) {
	const inline, apart = "store.url", "store.url_file"
	switch {
	case s.URL != "" && s.URLFile != "":
		r.add(inline, "url and url_file are both there", "keep one of them")
	case s.URL == "" && s.URLFile == "":
		r.add(inline, "missing: driver postgres needs a database", "set url, or url_file to keep it out of this file")
	case s.URL != "":
		r.database(inline, s.URL)
		if hasPassword(s.URL) {
			r.secret(inline, file)
		}
	default:
		b, err := readFile(s.URLFile)
		if err != nil {
			r.addf(apart, "name a file with postgres://USER:PASSWORD@HOST:PORT/NAME in it", "%s: %s", s.URLFile, err)
			return
		}
		s.URL = strings.TrimSpace(string(b))
		r.database(apart, s.URL)
		r.secret(apart, s.URLFile)
	}
}

func hasPassword(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return true // whatever it is
	}
	_, has := u.User.Password()
	return has || u.Query().Has("password")
}

// database checks a URL without ever printing it.
func (r *report) database(key, text string) {
	u, err := url.Parse(text)
	if err != nil || !slices.Contains([]string{"postgres", "postgresql"}, u.Scheme) || strings.Trim(u.Path, "/") == "" {
		r.add(key, "no URL of a database", "write it as in postgres://USER:PASSWORD@HOST:5432/NAME")
	}
}
