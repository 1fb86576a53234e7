package crashtest

import (
	"hash/maphash"
	"os"
	"slices"
)

// Units of what a disk writes as one, in bytes.
const (
	pageSize   = 4096
	sectorSize = 512
)

// page is one page of a file, never changed once it is made.
type page struct {
	data *[pageSize]byte
	sum  uint64
}

// Image is a file's content. A copy shares its pages.
type Image struct {
	size  int64
	pages []page // nil data: zeros
}

func (m Image) clone() Image { return Image{m.size, slices.Clone(m.pages)} }

// write puts data at an offset, as pwrite does.
func (m *Image) write(seed maphash.Seed, off int64, data []byte) {
	m.grow(off + int64(len(data)))
	for len(data) > 0 {
		i, at := off/pageSize, off%pageSize
		n := copyPage(seed, &m.pages[i], int(at), data)
		off, data = off+int64(n), data[n:]
	}
}

func copyPage(seed maphash.Seed, p *page, at int, data []byte) int {
	var next [pageSize]byte
	if p.data != nil {
		next = *p.data
	}
	n := copy(next[at:], data)
	p.data, p.sum = &next, maphash.Bytes(seed, next[:])
	return n
}

func (m *Image) grow(size int64) {
	m.size = max(m.size, size)
	for int64(len(m.pages))*pageSize < size {
		m.pages = append(m.pages, page{})
	}
}

// truncate cuts or lengthens the file.
func (m *Image) truncate(seed maphash.Seed, size int64) {
	if size > m.size {
		m.grow(size)
		return
	}
	m.size = size
	m.pages = m.pages[:(size+pageSize-1)/pageSize]
	if rest := size % pageSize; rest != 0 {
		copyPage(seed, &m.pages[len(m.pages)-1], int(rest), make([]byte, pageSize-rest))
	}
}

// sum is equal for equal contents.
func (m Image) sum(h *maphash.Hash) {
	maphash.WriteComparable(h, m.size)
	for _, p := range m.pages {
		maphash.WriteComparable(h, p.sum)
	}
}

// store writes the content to a file, leaving holes where there are zeros.
func (m Image) store(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := m.copyTo(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// copyTo writes the content into an empty file.
func (m Image) copyTo(f *os.File) error {
	for i, p := range m.pages {
		if p.data == nil {
			continue
		}
		n := min(pageSize, m.size-int64(i)*pageSize)
		if _, err := f.WriteAt(p.data[:n], int64(i)*pageSize); err != nil {
			return err
		}
	}
	return f.Truncate(m.size)
}
