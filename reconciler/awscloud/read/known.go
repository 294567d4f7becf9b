package read

import (
	"hash/maphash"
	"sync"
	"time"
)

// known maps the bytes of the last complete list's elements to the values read from them. In an idle fleet
// nearly all elements are the same in the next list, in the same order, and the values never change. The
// zero value is empty.
type known[T any] struct {
	mu        sync.Mutex
	last      elements[T]
	renewedAt time.Time // time of the last list that was read without the remembered values
	// scannedSince counts the elements that were read one by one since then. lastUnchanged reports whether the
	// last list had none.
	scannedSince  int
	lastUnchanged bool
}

// Values that survive individually from a time of many allocations keep much memory from being freed. So
// everything is read again, changed or not, every renew, and as soon as nothing changes after most elements
// were read individually.
const renew = 5 * time.Minute

type elements[T any] struct {
	all []element[T]
	at  map[uint64]int // index in all, by hash
}

// element is one element, with the length and the hash of its bytes after the start tag.
type element[T any] struct {
	length int
	hash   uint64
	value  *T
}

// seed is the seed for all hashes of this process. Two different elements have the same hash with a
// probability of 2^-64.
var seed = maphash.MakeSeed()

// list is the reading of one list. A nil list remembers nothing.
type list[T any] struct {
	of           *known[T]
	before, here elements[T]
	next         int // index in before of the expected element
	fresh        bool
	scanned      int
}

// startList starts the reading of a list with the remembered values. Without them, everything is read again:
// every renew, and once nothing changes after most elements were read one by one (see renew).
func (k *known[T]) startList(now time.Time) *list[T] {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := len(k.last.all)
	l := &list[T]{of: k, here: elements[T]{make([]element[T], 0, n), make(map[uint64]int, n)}}
	if l.fresh = now.Sub(k.renewedAt) >= renew || k.lastUnchanged && 2*k.scannedSince > n; l.fresh {
		k.renewedAt = now
	} else {
		l.before = k.last
	}
	return l
}

// complete makes this complete list the remembered one. It also counts the elements that were scanned, which
// decides when everything is read again (see renew).
func (l *list[T]) complete() {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	k := l.of
	if k.last = l.here; l.fresh {
		k.scannedSince, k.lastUnchanged = 0, false
	} else {
		k.scannedSince, k.lastUnchanged = k.scannedSince+l.scanned, l.scanned == 0
	}
}

// read reads the entered element.
func (l *list[T]) read(s *pageScan, scan func(*pageScan) T) *T {
	if l == nil {
		v := scan(s)
		return &v
	}
	e, found := l.expected(s)
	if !found {
		mark := s.Mark()
		s.Skip()
		bytes := s.Since(mark)
		e = element[T]{length: len(bytes), hash: maphash.Bytes(seed, bytes)}
		if i, ok := l.before.at[e.hash]; ok {
			e.value, l.next = l.before.all[i].value, i+1
		} else {
			s.Back(mark)
			l.scanned++
			v := scan(s)
			e.value, l.next = &v, l.next+1
		}
	}
	l.here.at[e.hash] = len(l.here.all)
	l.here.all = append(l.here.all, e)
	return e.value
}

// expected skips the entered element and returns the remembered one, if its bytes equal those of the next
// element in the last list.
func (l *list[T]) expected(s *pageScan) (e element[T], found bool) {
	if l.next >= len(l.before.all) {
		return e, false
	}
	e = l.before.all[l.next]
	if bytes := s.Ahead(e.length); bytes == nil || maphash.Bytes(seed, bytes) != e.hash {
		return e, false
	}
	s.Leave(e.length)
	l.next++
	return e, true
}
