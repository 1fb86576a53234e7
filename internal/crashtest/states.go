package crashtest

import (
	"cmp"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// State names what a power cut left: of the changes before the event Cut, those
// that were durable, and of the pending ones those in Keep.
type State struct {
	Cut  int
	Keep []int // indices of pending events that reached the disk, ascending
	Torn int   // of Keep: the one that reached it only in part; -1: none
	Unit int   // what it was torn at: a sector or a page
	Seed uint64
}

// Volume is all files of a disk at one moment.
type Volume struct {
	seed  maphash.Seed
	files map[int]Image
	names map[string]int
}

func newVolume(seed maphash.Seed) *Volume {
	return &Volume{seed, map[int]Image{}, map[string]int{}}
}

func (v *Volume) clone() *Volume {
	c := &Volume{v.seed, maps.Clone(v.files), maps.Clone(v.names)}
	for id, m := range c.files {
		c.files[id] = m.clone()
	}
	return c
}

// apply does what an event did.
func (v *Volume) apply(e Event) {
	switch e.Kind {
	case Write, Truncate:
		m := v.files[e.File]
		if e.Kind == Write {
			m.write(v.seed, e.Off, e.Data)
		} else {
			m.truncate(v.seed, e.Off)
		}
		v.files[e.File] = m
	case Create:
		v.names[e.Path] = e.File
	case Rename:
		delete(v.names, e.Path)
		v.names[e.To] = e.File
	case Unlink:
		delete(v.names, e.Path)
	}
}

// tear does what a write did, for some of its units only.
func (v *Volume) tear(e Event, unit int, rng *rand.Rand) {
	for at := 0; at < len(e.Data); {
		n := min(unit-int(e.Off+int64(at))%unit, len(e.Data)-at)
		if rng.IntN(2) == 0 {
			v.apply(Event{Kind: Write, File: e.File, Off: e.Off + int64(at), Data: e.Data[at : at+n]})
		}
		at += n
	}
}

// sum is equal for volumes with equal files of equal names below a folder.
func (v *Volume) sum(below string) uint64 {
	var h maphash.Hash
	h.SetSeed(v.seed)
	for _, name := range slices.Sorted(maps.Keys(v.names)) {
		if filepath.Dir(name) == below {
			h.WriteString(name)
			v.files[v.names[name]].sum(&h)
		}
	}
	return h.Sum64()
}

// Store writes the files below a folder of the volume into a folder, which is
// emptied first.
func (v *Volume) Store(below, dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, id := range v.names {
		if filepath.Dir(name) != below {
			continue
		}
		if err := v.files[id].store(filepath.Join(dir, filepath.Base(name))); err != nil {
			return err
		}
	}
	return nil
}

// Replay goes through a recording and knows at each moment what is durable.
type Replay struct {
	rec     Recording
	at      int // events before it happened
	durable *Volume
	pending []int // changes that are not durable, ascending
}

// NewReplay begins at the beginning.
func NewReplay(rec Recording) *Replay {
	return &Replay{rec: rec, durable: newVolume(maphash.MakeSeed())}
}

// step lets the next event happen.
func (r *Replay) step() {
	i, e := r.at, r.rec.Events[r.at]
	r.at++
	switch e.Kind {
	case Flush:
		r.settle(func(j int) bool {
			p := r.rec.Events[j]
			return j < e.Upto && p.File == e.File && (p.Kind == Write || p.Kind == Truncate)
		})
	case FlushDir:
		r.settle(func(j int) bool {
			p := r.rec.Events[j]
			return j < e.Upto && p.Path != "" && filepath.Dir(p.Path) == e.Path
		})
	case Lost:
		r.pending = slices.DeleteFunc(r.pending, func(j int) bool { return j < e.Upto && r.rec.Events[j].File == e.File })
	case Said, 0:
	default:
		r.pending = append(r.pending, i)
	}
}

// settle makes pending events durable.
func (r *Replay) settle(done func(int) bool) {
	r.pending = slices.DeleteFunc(r.pending, func(j int) bool {
		if done(j) {
			r.durable.apply(r.rec.Events[j])
			return true
		}
		return false
	})
}

// Volume builds a state. The replay must not be past its cut; it goes there.
func (r *Replay) Volume(s State) *Volume {
	for r.at < s.Cut {
		r.step()
	}
	v := r.durable.clone()
	rng := rand.New(rand.NewPCG(s.Seed, 1))
	for _, i := range s.Keep {
		if e := r.rec.Events[i]; i == s.Torn {
			v.tear(e, s.Unit, rng)
		} else {
			v.apply(e)
		}
	}
	return v
}

// Enumerate gives the states that a power cut between two events could have left of
// the files below a folder, each content once, and with the last moment at which it
// could have been left: then the most had been announced. They are in the order of
// their cuts.
func Enumerate(rec Recording, below string, seed uint64, from, to int) []State {
	r, rng := NewReplay(rec), rand.New(rand.NewPCG(seed, 2))
	found := map[uint64]State{}
	for r.at < to {
		r.step()
		if r.at < from {
			continue
		}
		for _, s := range r.choices(rng) {
			found[r.Volume(s).sum(below)] = s
		}
	}
	states := slices.Collect(maps.Values(found))
	slices.SortFunc(states, func(a, b State) int {
		return cmp.Or(cmp.Compare(a.Cut, b.Cut), slices.Compare(a.Keep, b.Keep), cmp.Compare(a.Seed, b.Seed))
	})
	return states
}

// Flushes gives the events that are flushes of files or folders.
func (r Recording) Flushes() (at []int) {
	for i, e := range r.Events {
		if e.Kind == Flush || e.Kind == FlushDir {
			at = append(at, i)
		}
	}
	return at
}

// Without gives the recording of a disk that lied about one event: it said that it
// had done it, and had not.
func (r Recording) Without(event int) Recording {
	r.Events = slices.Clone(r.Events)
	r.Events[event] = Event{}
	return r
}

// How many changes may be pending so that all of their subsets are tried; how many
// states are drawn by chance at each cut; and how many prefixes and single losses
// are tried at most: what a process left without any flush is long.
const (
	allOf     = 4
	drawnEach = 5
	mostEach  = 24
)

// choices gives states of the present cut: nothing and all of what is pending, all
// subsets of few changes, each prefix, each single loss, and some subsets with a torn
// write.
func (r *Replay) choices(rng *rand.Rand) (out []State) {
	add := func(keep []int, torn, unit int) {
		out = append(out, State{Cut: r.at, Keep: keep, Torn: torn, Unit: unit, Seed: rng.Uint64()})
	}
	p := r.pending
	add(nil, -1, 0)
	if len(p) == 0 {
		return out
	}
	all := slices.Clone(p)
	add(all, -1, 0)
	if len(p) <= allOf {
		for set := 1; set < 1<<len(p)-1; set++ {
			var keep []int
			for i, j := range p {
				if set&(1<<i) != 0 {
					keep = append(keep, j)
				}
			}
			add(keep, -1, 0)
		}
	}
	for _, i := range some(rng, len(p)) {
		add(slices.Clone(all[:i]), -1, 0)
		add(slices.Concat(all[:i], all[i+1:]), -1, 0)
	}
	for range drawnEach {
		var keep, writes []int
		for _, j := range p {
			if rng.IntN(2) == 0 {
				continue
			}
			if keep = append(keep, j); len(r.rec.Events[j].Data) > sectorSize {
				writes = append(writes, j)
			}
		}
		if len(writes) == 0 {
			add(keep, -1, 0)
			continue
		}
		unit := []int{sectorSize, pageSize}[rng.IntN(2)]
		add(keep, writes[rng.IntN(len(writes))], unit)
	}
	return out
}

// some gives the numbers below n, or mostEach of them.
func some(rng *rand.Rand, n int) []int {
	out := rng.Perm(n)
	return out[:min(n, mostEach)]
}
