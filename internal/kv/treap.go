package kv

import (
	"bytes"
	"hash/fnv"
)

// node is an ordered map that never changes: put and remove copy the path from the
// root and share the rest, so that a root is a snapshot. Its balance comes from the
// keys' hashes (a treap), so the same content always has the same shape.
type node struct {
	key, value  []byte
	weight      uint64 // of the key; a parent's is not smaller than its children's
	left, right *node
}

func weigh(key []byte) uint64 {
	h := fnv.New64a()
	h.Write(key)
	w := h.Sum64()
	w ^= w >> 33 // FNV's high bits hardly differ between short keys
	w *= 0xff51afd7ed558ccd
	return w ^ w>>33
}

func (n *node) get(key []byte) (value []byte, ok bool) {
	for n != nil {
		switch c := bytes.Compare(key, n.key); {
		case c == 0:
			return n.value, true
		case c < 0:
			n = n.left
		default:
			n = n.right
		}
	}
	return nil, false
}

// put gives the map with key set; it keeps both slices.
func (n *node) put(key, value []byte) *node {
	less, more := n.split(key)
	one := &node{key: key, value: value, weight: weigh(key)}
	return join(join(less, one), more)
}

// remove gives the map without key.
func (n *node) remove(key []byte) *node {
	less, more := n.split(key)
	return join(less, more)
}

// split gives the parts below and above key; key itself is in neither.
func (n *node) split(key []byte) (less, more *node) {
	if n == nil {
		return nil, nil
	}
	c := bytes.Compare(key, n.key)
	if c == 0 {
		return n.left, n.right
	}
	half := *n
	if c < 0 {
		less, half.left = n.left.split(key)
		return less, &half
	}
	half.right, more = n.right.split(key)
	return &half, more
}

// join gives the union of two maps of which the first is below the second.
func join(less, more *node) *node {
	if less == nil {
		return more
	}
	if more == nil {
		return less
	}
	if less.weight >= more.weight {
		top := *less
		top.right = join(less.right, more)
		return &top
	}
	top := *more
	top.left = join(less, more.left)
	return &top
}

// walk calls fn for the keys from from on, in ascending order, until it says stop.
func (n *node) walk(from []byte, fn func(key, value []byte) bool) bool {
	if n == nil {
		return true
	}
	if bytes.Compare(n.key, from) >= 0 {
		if !n.left.walk(from, fn) || !fn(n.key, n.value) {
			return false
		}
	}
	return n.right.walk(from, fn)
}
