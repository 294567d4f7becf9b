package secret

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// Finder finds the values of sets in texts, in all forms that outputs use. It finds many of them in one pass,
// and needs little more memory than the forms themselves. strings.Replacer's tries would need much more,
// because decrypted scripts are long. The cost of adding or removing a set depends only on that set. A Finder
// is safe for concurrent use. Nil and the zero value find nothing.
type Finder struct {
	mu     sync.RWMutex
	values map[string]int // number of sets with each value
	forms  map[string]int // number of values with each form
	// begins reports whether any form, including removed forms, starts with the given two bytes. lengths has
	// the lengths of the forms by their first bytes, in descending order.
	begins  [1 << 10]uint64
	lengths map[head][]length
	// most is the maximum number of forms since the maps were made. Maps never shrink.
	most int
}

type head [leastValue]byte

// length is a length and the number of forms that have it.
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

// Add adds the values of a set.
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

// indexStart records the start of a form.
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

// Remove removes the values of a set that was added.
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

// end reverts indexStart.
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

// shrink makes new, smaller maps after most forms were removed.
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

// Len returns the number of values.
func (f *Finder) Len() int {
	if f == nil {
		return 0
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	return len(f.values)
}

// Redact replaces every value in the text with Mask.
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

// In reports whether a field's text reveals a value. A value that looks like a word or a number, such as a
// user name in an encrypted file, counts only if it is the whole text. All other values count anywhere in the
// text, also in base64.
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

// next returns the start and end of the first form at or after a position.
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
