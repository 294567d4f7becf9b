package awsemu

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// xmlTime is how the query protocols write times.
const xmlTime = "2006-01-02T15:04:05.000Z"

// xmlWriter appends XML to a buffer. It is small because answers are: elements
// without attributes, in the order in which they are written.
type xmlWriter struct {
	buf []byte
}

// open starts an element.
func (w *xmlWriter) open(name string) {
	w.buf = append(w.buf, '<')
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, '>')
}

// close ends an element.
func (w *xmlWriter) close(name string) {
	w.buf = append(w.buf, '<', '/')
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, '>')
}

// text writes an element with text.
func (w *xmlWriter) text(name, value string) {
	w.open(name)
	w.escape(value)
	w.close(name)
}

// optional writes an element unless value is "".
func (w *xmlWriter) optional(name, value string) {
	if value != "" {
		w.text(name, value)
	}
}

// integer writes an element with a number.
func (w *xmlWriter) integer(name string, value int64) {
	w.open(name)
	w.buf = strconv.AppendInt(w.buf, value, 10)
	w.close(name)
}

// optionalInt writes an element unless value is nil.
func (w *xmlWriter) optionalInt(name string, value *int64) {
	if value != nil {
		w.integer(name, *value)
	}
}

// boolean writes an element with true or false.
func (w *xmlWriter) boolean(name string, value bool) {
	w.open(name)
	w.buf = strconv.AppendBool(w.buf, value)
	w.close(name)
}

// optionalBool writes an element unless value is nil.
func (w *xmlWriter) optionalBool(name string, value *bool) {
	if value != nil {
		w.boolean(name, *value)
	}
}

// time writes an element with a time in UTC.
func (w *xmlWriter) time(name string, value time.Time) {
	w.open(name)
	w.buf = value.UTC().AppendFormat(w.buf, xmlTime)
	w.close(name)
}

// texts writes a list of texts: EC2's items or the query protocol's members.
func (w *xmlWriter) texts(name, item string, values []string) {
	w.open(name)
	for _, v := range values {
		w.text(item, v)
	}
	w.close(name)
}

// escape appends text. Characters that XML cannot hold become U+FFFD.
func (w *xmlWriter) escape(s string) {
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
			w.buf = append(w.buf, s[last:i]...)
			w.buf = append(w.buf, replacement...)
			last = i + size
		}
		i += size
	}
	w.buf = append(w.buf, s[last:]...)
}
