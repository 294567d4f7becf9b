package secret

import (
	"slices"
	"strings"
)

// finder finds many texts in one pass. It takes little more memory than the texts
// themselves, unlike the tries of strings.Replacer: decrypted scripts are long.
type finder struct {
	// second tells, for the first two bytes of a text, whether any form begins so.
	second [1 << 10]uint64
	// forms are by their first bytes, the longest first.
	forms map[[leastValue]byte][]string
}

func newFinder(forms map[string]bool) finder {
	f := finder{forms: map[[leastValue]byte][]string{}}
	for form := range forms {
		if len(form) < leastValue {
			continue
		}
		pair := uint16(form[0])<<8 | uint16(form[1])
		f.second[pair>>6] |= 1 << (pair & 63)
		head := [leastValue]byte([]byte(form[:leastValue]))
		f.forms[head] = append(f.forms[head], form)
	}
	for _, list := range f.forms {
		slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) })
	}
	return f
}

// next returns where the first form begins at or after a place, and ends.
func (f *finder) next(text string, from int) (start, end int, ok bool) {
	for i := from; i+leastValue <= len(text); i++ {
		pair := uint16(text[i])<<8 | uint16(text[i+1])
		if f.second[pair>>6]&(1<<(pair&63)) == 0 {
			continue
		}
		for _, form := range f.forms[[leastValue]byte([]byte(text[i:i+leastValue]))] {
			if strings.HasPrefix(text[i:], form) {
				return i, i + len(form), true
			}
		}
	}
	return 0, 0, false
}

func (f *finder) finds(text string) bool {
	_, _, ok := f.next(text, 0)
	return ok
}

func (f *finder) replace(text string) string {
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
