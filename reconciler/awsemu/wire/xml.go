package wire

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// Time is the time format of the query protocols.
const Time = "2006-01-02T15:04:05.000Z"

// XML appends XML to a buffer. It is small because answers are simple: elements without attributes, in the
// order in which they are written.
type XML struct {
	Buf []byte
}

// Open starts an element.
func (w *XML) Open(name string) {
	w.Buf = append(w.Buf, '<')
	w.Buf = append(w.Buf, name...)
	w.Buf = append(w.Buf, '>')
}

// Close ends an element.
func (w *XML) Close(name string) {
	w.Buf = append(w.Buf, '<', '/')
	w.Buf = append(w.Buf, name...)
	w.Buf = append(w.Buf, '>')
}

// Text writes an element with text.
func (w *XML) Text(name, value string) {
	w.Open(name)
	w.escape(value)
	w.Close(name)
}

// Optional writes an element unless value is "".
func (w *XML) Optional(name, value string) {
	if value != "" {
		w.Text(name, value)
	}
}

// Integer writes an element with a number.
func (w *XML) Integer(name string, value int64) {
	w.Open(name)
	w.Buf = strconv.AppendInt(w.Buf, value, 10)
	w.Close(name)
}

// OptionalInt writes an element unless value is nil.
func (w *XML) OptionalInt(name string, value *int64) {
	if value != nil {
		w.Integer(name, *value)
	}
}

// Boolean writes an element with true or false.
func (w *XML) Boolean(name string, value bool) {
	w.Open(name)
	w.Buf = strconv.AppendBool(w.Buf, value)
	w.Close(name)
}

// OptionalBool writes an element unless value is nil.
func (w *XML) OptionalBool(name string, value *bool) {
	if value != nil {
		w.Boolean(name, *value)
	}
}

// Time writes an element with a time in UTC.
func (w *XML) Time(name string, value time.Time) {
	w.Open(name)
	w.Buf = value.UTC().AppendFormat(w.Buf, Time)
	w.Close(name)
}

// OptionalTime writes an element unless the time is zero.
func (w *XML) OptionalTime(name string, value time.Time) {
	if !value.IsZero() {
		w.Time(name, value)
	}
}

// List writes a list. Each entry is an element: item in EC2, member in the query protocol.
func List[T any](w *XML, name, item string, all []T, write func(T)) {
	w.Open(name)
	for _, one := range all {
		w.Open(item)
		write(one)
		w.Close(item)
	}
	w.Close(name)
}

// Texts writes a list of texts: EC2's items or the query protocol's members.
func (w *XML) Texts(name, item string, values []string) {
	w.Open(name)
	for _, v := range values {
		w.Text(item, v)
	}
	w.Close(name)
}

// escape appends text. It replaces characters that XML does not allow by U+FFFD.
func (w *XML) escape(s string) {
	last := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf && c >= 0x20 && c != '<' && c != '>' && c != '&' && c != '"' {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		replacement := ""
		switch {
		case r == '<':
			replacement = "&lt;"
		case r == '>':
			replacement = "&gt;"
		case r == '&':
			replacement = "&amp;"
		case r == '"':
			replacement = "&#34;"
		case r == '\r':
			replacement = "&#xD;"
		case r == '\t' || r == '\n':
		case r < 0x20 || r == 0xFFFE || r == 0xFFFF || (r == utf8.RuneError && size == 1):
			replacement = "\uFFFD"
		}
		if replacement != "" {
			w.Buf = append(w.Buf, s[last:i]...)
			w.Buf = append(w.Buf, replacement...)
			last = i + size
		}
		i += size
	}
	w.Buf = append(w.Buf, s[last:]...)
}

// Epoch returns a time in the format of the JSON protocols: seconds with milliseconds.
func Epoch(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// WriteTags writes EC2's tagSet, or nothing if there are no tags.
func (w *XML) WriteTags(ts world.Tags) {
	if len(ts) == 0 {
		return
	}
	List(w, "tagSet", "item", ts, func(t world.Tag) {
		w.Text("key", t.Key)
		w.Text("value", t.Value)
	})
}
