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

// Shared holds once what is equal in several renders: overlays of one base want
// nearly the same, and weir keeps the wanted state of each for as long as it holds.
// Callers must not change the values that it returns. It is safe for concurrent use.
type Shared struct {
	// under is searched first, and never changed.
	under *Shared

	mu     sync.Mutex
	texts  map[string]string
	values map[valueID]sharedValue
	// hidden are sets of secret values, by their length.
	hidden map[int][]*secret.Set
	bytes  int
	// limit bounds bytes, if not 0, and live tells which renders are held, where some
	// that were are not any more.
	limit int
	live  func() []*Kept
	// fresh holds the additions of the attempt under way.
	fresh struct {
		texts  []string
		values []valueID
		bytes  int
	}
}

// valueID stands for the content of a list, a map, or what is pointed to.
type valueID [sha256.Size]byte

type sharedValue struct {
	reflect.Value
	bytes int
}

// Bytes that an entry of a map takes beside its key and value, about.
const entryBytes = 48

// NewShared returns a Shared that holds nothing. It also shares all that under holds,
// for as long as it is used; under may be nil.
func NewShared(under *Shared) *Shared {
	return &Shared{under: under, texts: map[string]string{}, values: map[valueID]sharedValue{}, hidden: map[int][]*secret.Set{}}
}

// Limit bounds the bytes: a Keep that would exceed them sweeps out what no render holds
// any more, and then fails if they still do not suffice. live returns all renders that
// are held; it is nil where nothing is ever dropped.
func (s *Shared) Limit(bytes int, live func() []*Kept) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit, s.live = bytes, live
}

// FullError says that a render and the kept ones exceed the memory limit.
type FullError struct {
	// Bytes counts the bytes that it adds, Held those of all other renders, and Limit bounds their
	// sum.
	Bytes, Held, Limit int
}

func (e *FullError) Error() string {
	return fmt.Sprintf("the render takes %d bytes, beside %d of others; the limit is %d", e.Bytes, e.Held, e.Limit)
}

// attempt adds what do shares; if that is too much, nothing. The lock is held.
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

// count adds to the bytes that are held.
func (s *Shared) count(bytes int) {
	s.bytes += bytes
	s.fresh.bytes += bytes
}

// Bytes returns the approximate memory in use, without that of under.
func (s *Shared) Bytes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// lock locks s and what is under it.
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

// text returns the one text that is equal to t.
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
		one = strings.Clone(t) // a part of a larger text would keep all of it
		s.texts[one] = one
		s.fresh.texts = append(s.fresh.texts, one)
		s.count(len(one) + entryBytes)
	}
	return one
}

// set returns the one set of secret values that is equal to h.
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

// share returns a copy of v whose texts, lists, maps and pointers are those of all
// equal ones. The lock is held.
func share[T any](s *Shared, v T) T {
	var out T
	s.copy(reflect.ValueOf(&out).Elem(), reflect.ValueOf(&v).Elem())
	return out
}

// copy sets to, which is zero, to a shared copy of from.
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
			to.Set(s.one(fresh, int(from.Type().Elem().Size()), fresh.Elem()))
		}
	case reflect.Slice:
		if !from.IsNil() {
			fresh := reflect.MakeSlice(from.Type(), from.Len(), from.Len())
			content := make([]reflect.Value, from.Len())
			for i := range from.Len() {
				content[i] = fresh.Index(i)
				s.copy(content[i], from.Index(i))
			}
			to.Set(s.one(fresh, from.Len()*int(from.Type().Elem().Size()), content...))
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
			to.Set(s.one(fresh, from.Len()*(int(from.Type().Key().Size()+from.Type().Elem().Size())+entryBytes), content...))
		}
	default:
		to.Set(from)
	}
}

// sortedKeys are the keys of a map, which are texts.
func sortedKeys(m reflect.Value) []reflect.Value {
	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

// one returns the only value with the content, whose parts are all shared already. If no such value
// is stored yet, it stores fresh, which takes so many bytes itself.
func (s *Shared) one(fresh reflect.Value, bytes int, content ...reflect.Value) reflect.Value {
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

// identify writes what tells a value whose parts are shared from all others of its
// type.
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

// Sweep forgets all that none of the renders holds.
func (s *Shared) Sweep(kept []*Kept) {
	defer s.lock()()
	s.sweep(kept)
}

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

// marks holds the texts of renders, and their values by address.
type marks struct {
	texts  map[string]bool
	values map[uintptr]bool
}

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
