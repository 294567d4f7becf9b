package wire

import (
	"encoding/xml"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestXMLEscape(t *testing.T) {
	for _, text := range []string{"plain", `a<b>&"c'`, "tab\tline\nreturn\r", "ünï©ode 🙂", ""} {
		var w XML
		w.Text("t", text)
		var back string
		if err := xml.Unmarshal(w.Buf, &back); err != nil || back != text {
			t.Errorf("%q is written as %s and read as %q, %v", text, w.Buf, back, err)
		}
	}
}

func FuzzXMLEscape(f *testing.F) {
	f.Add("a\x00b\xff\uFFFE")
	f.Fuzz(func(t *testing.T, text string) {
		var w XML
		w.Text("t", text)
		var back string
		if err := xml.Unmarshal(w.Buf, &back); err != nil {
			t.Fatalf("%q is written as %q: %v", text, w.Buf, err)
		}
		if utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r == 0xFFFE || r == 0xFFFF || r == 0xFFFD }) && back != text {
			t.Fatalf("%q is read as %q", text, back)
		}
	})
}
