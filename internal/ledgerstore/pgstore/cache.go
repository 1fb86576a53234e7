package pgstore

import (
	"sync"

	"admitone/internal/ledger"
)

// maxKept bounds what is kept in memory of subjects: then it begins anew.
const maxKept = 1 << 17

// kept is a subject as it was read; found is false where there is none.
type kept struct {
	row   ledger.SubjectRow
	found bool
}

// cache holds subjects as they stand at one version of the database's state.
type cache struct {
	mu       sync.Mutex
	version  int64
	subjects map[string]kept
}

// get gives what is known of a subject at a version.
func (c *cache) get(version int64, name string) (kept, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version != version {
		return kept{}, false
	}
	k, ok := c.subjects[name]
	return k, ok
}

// put keeps what was read at a version, unless a newer one is known.
func (c *cache) put(version int64, name string, k kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if version < c.version {
		return
	}
	if version > c.version || len(c.subjects) >= maxKept || c.subjects == nil {
		c.version, c.subjects = version, map[string]kept{}
	}
	c.subjects[name] = k
}
