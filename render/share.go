package render

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/render/secret"
)

// Shared stores equal values of several renders only once. Overlays of one base are nearly equal, and weir
// keeps the desired state of each of them. Callers must not change the returned values. It is safe for
// concurrent use.
type Shared struct {
	// under is searched first and never changed.
	under *Shared

	mu     sync.Mutex
	texts  map[string]string
	values map[valueID]sharedValue
	// hidden has the sets of secret values, by their length.
	hidden map[int][]*secret.Set
	bytes  int
	// limit bounds bytes; 0 means no limit. live returns the renders still in use, so that values of dropped
	// renders can be removed.
	limit int
	live  func() []*Kept
	// fresh has the additions of the current attempt.
	fresh struct {
		texts  []string
		values []valueID
		bytes  int
	}
}

// valueID identifies the content of a list, map or pointer.
type valueID [sha256.Size]byte

type sharedValue struct {
	reflect.Value
	bytes int
}

// entryBytes is the approximate overhead of a map entry, without its key and value.
const entryBytes = 48

// NewShared returns an empty Shared. It also shares the values in under, which may be nil.
func NewShared(under *Shared) *Shared {
	return &Shared{under: under, texts: map[string]string{}, values: map[valueID]sharedValue{}, hidden: map[int][]*secret.Set{}}
}

// Limit bounds the memory in bytes. A Keep that would exceed it first removes the values that no render in
// use has. If that does not suffice, Keep fails. live returns all renders in use. It is nil if renders are
// never dropped.
func (s *Shared) Limit(bytes int, live func() []*Kept) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit, s.live = bytes, live
}

// FullError reports that a render and the kept renders exceed the memory limit.
type FullError struct {
	// Bytes is the memory that the render adds, Held the memory of all other renders, and Limit the bound of
	// their sum.
	Bytes, Held, Limit int
}

func (e *FullError) Error() string {
	return fmt.Sprintf("the render takes %d bytes and other renders take %d; the limit is %d", e.Bytes, e.Held, e.Limit)
}

// attempt runs do, which adds values. If they exceed the limit, it removes them again. The caller holds the
// lock.
func (s *Shared) attempt(do func()) error {
	s.fresh.bytes = 0
	do()
	fresh := s.fresh
	s.fresh.texts, s.fresh.values = nil, nil
	if s.limit == 0 || s.bytes <= s.limit {
		return nil
	}
	for _, t := range fresh.texts {
		delete(s.texts, t)
	}
	for _, id := range fresh.values {
		delete(s.values, id)
	}
	s.bytes -= fresh.bytes
	return &FullError{Bytes: fresh.bytes, Held: s.bytes, Limit: s.limit}
}

// count adds to the bytes in use.
func (s *Shared) count(bytes int) {
	s.bytes += bytes
	s.fresh.bytes += bytes
}

// Bytes returns the approximate memory in use, without the memory of under.
func (s *Shared) Bytes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// lock locks s and under.
func (s *Shared) lock() (unlock func()) {
	s.mu.Lock()
	if s.under == nil {
		return s.mu.Unlock
	}
	s.under.mu.Lock()
	return func() {
		s.under.mu.Unlock()
		s.mu.Unlock()
	}
}

// text returns the stored text that is equal to t.
func (s *Shared) text(t string) string {
	if t == "" {
		return ""
	}
	if s.under != nil {
		if one, known := s.under.texts[t]; known {
			return one
		}
	}
	one, known := s.texts[t]
	if !known {
		one = strings.Clone(t) // a clone, because a substring would keep the larger text in memory
		s.texts[one] = one
		s.fresh.texts = append(s.fresh.texts, one)
		s.count(len(one) + entryBytes)
	}
	return one
}

// set returns the stored set of secret values that is equal to h.
func (s *Shared) set(h *secret.Set) *secret.Set {
	same := func(o *secret.Set) bool { return o.Equal(h) }
	if s.under != nil {
		if i := slices.IndexFunc(s.under.hidden[h.Len()], same); i >= 0 {
			return s.under.hidden[h.Len()][i]
		}
	}
	if i := slices.IndexFunc(s.hidden[h.Len()], same); i >= 0 {
		return s.hidden[h.Len()][i]
	}
	s.hidden[h.Len()] = append(s.hidden[h.Len()], h)
	return h
}

// share returns a copy of v that uses the stored texts, lists, maps and pointers if they are equal. The
// caller holds the lock.
func share[T any](s *Shared, v T) T {
	var out T
	s.copy(reflect.ValueOf(&out).Elem(), reflect.ValueOf(&v).Elem())
	return out
}

// copy sets to, which must be zero, to a copy of from that uses the stored texts, pointers, lists and maps
// if they are equal. The caller holds the lock.
func (s *Shared) copy(to, from reflect.Value) {
	switch from.Kind() {
	case reflect.String:
		to.SetString(s.text(from.String()))
	case reflect.Struct:
		for i := range from.NumField() {
			s.copy(to.Field(i), from.Field(i))
		}
	case reflect.Pointer:
		if !from.IsNil() {
			fresh := reflect.New(from.Type().Elem())
			s.copy(fresh.Elem(), from.Elem())
			to.Set(s.stored(fresh, int(from.Type().Elem().Size()), fresh.Elem()))
		}
	case reflect.Slice:
		if !from.IsNil() {
			fresh := reflect.MakeSlice(from.Type(), from.Len(), from.Len())
			content := make([]reflect.Value, from.Len())
			for i := range from.Len() {
				content[i] = fresh.Index(i)
				s.copy(content[i], from.Index(i))
			}
			to.Set(s.stored(fresh, from.Len()*int(from.Type().Elem().Size()), content...))
		}
	case reflect.Map:
		if !from.IsNil() {
			fresh := reflect.MakeMapWithSize(from.Type(), from.Len())
			var content []reflect.Value
			for _, key := range sortedKeys(from) {
				k, v := reflect.New(from.Type().Key()).Elem(), reflect.New(from.Type().Elem()).Elem()
				s.copy(k, key)
				s.copy(v, from.MapIndex(key))
				fresh.SetMapIndex(k, v)
				content = append(content, k, v)
			}
			to.Set(s.stored(fresh, from.Len()*(int(from.Type().Key().Size()+from.Type().Elem().Size())+entryBytes), content...))
		}
	default:
		to.Set(from)
	}
}

// sortedKeys returns the sorted keys of a map with string keys.
func sortedKeys(m reflect.Value) []reflect.Value {
	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

// stored returns the stored value with the given content. All parts of the content are shared already. If
// no such value is stored yet, it stores fresh, which takes the given number of bytes without its parts.
func (s *Shared) stored(fresh reflect.Value, bytes int, content ...reflect.Value) reflect.Value {
	h := sha256.New()
	h.Write([]byte(fresh.Type().String()))
	for _, v := range content {
		identify(h, v)
	}
	var id valueID
	h.Sum(id[:0])
	if s.under != nil {
		if have, known := s.under.values[id]; known {
			return have.Value
		}
	}
	if have, known := s.values[id]; known {
		return have.Value
	}
	bytes += len(id) + entryBytes
	s.values[id] = sharedValue{fresh, bytes}
	s.fresh.values = append(s.fresh.values, id)
	s.count(bytes)
	return fresh
}

// identify writes bytes that identify a value among all values of its type. The parts of the value are shared
// already.
func identify(h hash.Hash, v reflect.Value) {
	number := func(n uint64) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], n)
		h.Write(b[:])
	}
	switch v.Kind() {
	case reflect.String:
		number(uint64(v.Len()))
		h.Write([]byte(v.String()))
	case reflect.Struct:
		for i := range v.NumField() {
			identify(h, v.Field(i))
		}
	case reflect.Pointer, reflect.Map:
		number(uint64(v.Pointer()))
	case reflect.Slice:
		number(uint64(v.Pointer()))
		number(uint64(v.Len()))
	case reflect.Bool:
		if v.Bool() {
			number(1)
		} else {
			number(0)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		number(uint64(v.Int())) //nolint:gosec // any number stands for itself
	case reflect.Float64:
		number(math.Float64bits(v.Float()))
	default:
		panic("render: nothing shares a " + v.Type().String()) // a test shares every type of an intent
	}
}

// Sweep removes all values that none of the renders has.
func (s *Shared) Sweep(kept []*Kept) {
	defer s.lock()()
	s.sweep(kept)
}

// sweep is Sweep. The caller holds the lock.
func (s *Shared) sweep(kept []*Kept) {
	live := marks{texts: map[string]bool{}, values: map[uintptr]bool{}}
	clear(s.hidden)
	for _, k := range kept {
		live.mark(reflect.ValueOf(&k.Set).Elem())
		live.mark(reflect.ValueOf(&k.Diags).Elem())
		if list := s.hidden[k.Hidden.Len()]; !slices.Contains(list, k.Hidden) {
			s.hidden[k.Hidden.Len()] = append(list, k.Hidden)
		}
		k.Reads.With(func(t string) string {
			live.texts[t] = true
			return t
		})
	}
	maps.DeleteFunc(s.texts, func(t, _ string) bool { return !live.texts[t] })
	maps.DeleteFunc(s.values, func(_ valueID, v sharedValue) bool { return !live.values[v.Pointer()] })
	s.bytes = 0
	for t := range s.texts {
		s.bytes += len(t) + entryBytes
	}
	for _, v := range s.values {
		s.bytes += v.bytes
	}
}

// marks has the texts of renders, and the addresses of their values.
type marks struct {
	texts  map[string]bool
	values map[uintptr]bool
}

// mark adds the texts in v, and the addresses of pointers, slices and maps in v.
func (m marks) mark(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		m.texts[v.String()] = true
	case reflect.Struct:
		for i := range v.NumField() {
			m.mark(v.Field(i))
		}
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if v.IsNil() || m.values[v.Pointer()] {
			return
		}
		m.values[v.Pointer()] = true
		switch v.Kind() {
		case reflect.Pointer:
			m.mark(v.Elem())
		case reflect.Slice:
			for i := range v.Len() {
				m.mark(v.Index(i))
			}
		default:
			for it := v.MapRange(); it.Next(); {
				m.mark(it.Key())
				m.mark(it.Value())
			}
		}
	}
}
