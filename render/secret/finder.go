package secret

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// Finder finds the values of sets in texts, in every form that outputs have. It finds many of them
// in one pass, and uses little more memory than the forms themselves, unlike the tries of
// strings.Replacer: decrypted scripts are long. The cost to add or remove a set depends on that set
// only. It is safe for concurrent use; nil and the zero value find nothing.
type Finder struct {
	mu     sync.RWMutex
	values map[string]int // how many sets have each
	forms  map[string]int // how many values have each
	// begins reports, for the first two bytes of a text, whether any form begins so, including
	// removed forms; lengths holds the lengths of the forms, the longest first, by their first
	// bytes.
	begins  [1 << 10]uint64
	lengths map[head][]length
	// most is the highest number of forms since the maps were made, because maps never shrink.
	most int
}

type head [leastValue]byte

// length is the length of as many forms.
type length struct{ of, forms int }

// Finder returns a finder of the set's values.
func (s *Set) Finder() *Finder {
	if s == nil {
		return nil
	}
	f := &Finder{}
	f.Add(s)
	return f
}

// Add makes the Finder find the values of a set.
func (f *Finder) Add(s *Set) {
	if s == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.values == nil {
		f.values, f.forms, f.lengths = map[string]int{}, map[string]int{}, map[head][]length{}
	}
	for _, v := range s.values {
		if f.values[v]++; f.values[v] > 1 {
			continue
		}
		for _, form := range formsOf(v) {
			if f.forms[form]++; f.forms[form] == 1 {
				f.indexStart(form)
			}
		}
	}
	f.most = max(f.most, len(f.forms))
}

// indexStart notes how a form begins.
func (f *Finder) indexStart(form string) {
	pair := uint16(form[0])<<8 | uint16(form[1])
	f.begins[pair>>6] |= 1 << (pair & 63)
	h, list := headOf(form), f.lengths[headOf(form)]
	at, found := slices.BinarySearchFunc(list, len(form), byLength)
	if !found {
		list = slices.Insert(list, at, length{of: len(form)})
		f.lengths[h] = list
	}
	list[at].forms++
}

func headOf(form string) head { return head([]byte(form[:leastValue])) }

func byLength(l length, of int) int { return of - l.of }

// Remove takes the values of a set out that was added.
func (f *Finder) Remove(s *Set) {
	if s == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, v := range s.values {
		if f.values[v]--; f.values[v] > 0 {
			continue
		}
		delete(f.values, v)
		for _, form := range formsOf(v) {
			if f.forms[form]--; f.forms[form] == 0 {
				delete(f.forms, form)
				f.end(form)
			}
		}
	}
	f.shrink()
}

// end takes back what begin has noted.
func (f *Finder) end(form string) {
	h, list := headOf(form), f.lengths[headOf(form)]
	at, _ := slices.BinarySearchFunc(list, len(form), byLength)
	switch list[at].forms--; {
	case list[at].forms > 0:
	case len(list) == 1:
		delete(f.lengths, h)
	default:
		f.lengths[h] = slices.Delete(list, at, at+1)
	}
}

// shrink gives back what many values have taken that are gone.
func (f *Finder) shrink() {
	const few = 100
	if f.most <= few || f.most/4 < len(f.forms) {
		return
	}
	values, forms := make(map[string]int, len(f.values)), make(map[string]int, len(f.forms))
	maps.Copy(values, f.values)
	maps.Copy(forms, f.forms)
	f.values, f.forms, f.most = values, forms, len(forms)
	f.begins, f.lengths = [1 << 10]uint64{}, map[head][]length{}
	for form := range forms {
		f.indexStart(form)
	}
}

// Len is the number of values that are looked for.
func (f *Finder) Len() int {
	if f == nil {
		return 0
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	return len(f.values)
}

// Redact returns the text with Mask in place of every value.
func (f *Finder) Redact(text string) string {
	if f == nil || text == "" {
		return text
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	start, end, ok := f.next(text, 0)
	if !ok {
		return text
	}
	var b strings.Builder
	at := 0
	for ; ok; start, end, ok = f.next(text, at) {
		b.WriteString(text[at:start])
		b.WriteString(Mask)
		at = end
	}
	b.WriteString(text[at:])
	return b.String()
}

// In reports whether a field's text gives a value away. One that looks like a
// word or a number, such as the user name in an encrypted file, counts only where
// it is the whole text; every other one wherever it stands, also in base64.
func (f *Finder) In(text string) bool {
	if f == nil {
		return false
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	if _, _, ok := f.next(text, 0); !ok {
		return false
	}
	text = strings.TrimSpace(text)
	for v := range f.values {
		if text == v {
			return true
		}
		if Word(v) {
			continue
		}
		if strings.Contains(text, v) {
			return true
		}
		for _, form := range encoded(v) {
			if strings.Contains(text, form) {
				return true
			}
		}
	}
	return false
}

// next returns where the first form begins at or after a place, and ends.
func (f *Finder) next(text string, from int) (start, end int, ok bool) {
	if len(f.values) == 0 {
		return 0, 0, false
	}
	for i := from; i+leastValue <= len(text); i++ {
		pair := uint16(text[i])<<8 | uint16(text[i+1])
		if f.begins[pair>>6]&(1<<(pair&63)) == 0 {
			continue
		}
		for _, l := range f.lengths[headOf(text[i:])] {
			if end = i + l.of; end <= len(text) && f.forms[text[i:end]] > 0 {
				return i, end, true
			}
		}
	}
	return 0, 0, false
}
