package xmlscan

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// walk prints a document: elements with brackets, leaves with their text. A leaf
// is tried as text first, as a caller does that knows what it reads.
func walk(data []byte) (string, error) {
	var b strings.Builder
	s := New(data)
	var element func()
	element = func() {
		name := string(s.Name())
		if leaf(s) {
			fmt.Fprintf(&b, "%s=%q;", name, s.Text())
			return
		}
		b.WriteString(name + "[")
		for s.Child() {
			element()
		}
		b.WriteString("]")
	}
	if s.Child() {
		element()
	} else {
		s.fail("no root element")
	}
	return b.String(), s.End()
}

// leaf looks ahead for whether the current element holds text only.
func leaf(s *Scanner) bool {
	if s.empty {
		return true
	}
	i := bytes.IndexByte(s.data[s.pos:], '<')
	return i >= 0 && bytes.HasPrefix(s.data[s.pos+i:], []byte("</"))
}

// reference prints what encoding/xml makes of the same document.
func reference(data []byte) (string, error) {
	d := xml.NewDecoder(bytes.NewReader(data))
	var b strings.Builder
	type open struct {
		name string
		text strings.Builder
		more bool
	}
	var stack []*open
	roots := 0
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			if roots != 1 {
				return "", errors.New("not one root")
			}
			return b.String(), nil
		}
		if err != nil {
			return "", err
		}
		switch t := t.(type) {
		case xml.StartElement:
			if len(stack) == 0 {
				roots++
			} else if top := stack[len(stack)-1]; !top.more {
				top.more = true
				b.WriteString(top.name + "[")
			}
			stack = append(stack, &open{name: t.Name.Local})
		case xml.EndElement:
			top := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if top.more {
				b.WriteString("]")
			} else {
				fmt.Fprintf(&b, "%s=%q;", top.name, top.text.String())
			}
		case xml.CharData:
			if len(stack) > 0 {
				stack[len(stack)-1].text.Write(t)
			} else if len(bytes.TrimSpace(t)) > 0 {
				return "", errors.New("text outside")
			}
		}
	}
}

var documents = []string{
	`<a/>`, `<a></a>`, `<a>text</a>`, `<?xml version="1.0" encoding="UTF-8"?><!-- c --><a xmlns="http://x/y"><b>1</b> <c/><d><e>2</e></d></a>`,
	`<a>&lt;&gt;&amp;&quot;&apos;&#65;&#x42;</a>`, "<a>one\r\ntwo\rthree&#13;</a>", `<ns:a><ns:b>x</ns:b></ns:a>`, `<a b="&gt;>" c='"'>t</a>`,
	"<a>\n  <b>  keep  </b>\n</a >", `<a>ü€😀</a>`, `<a><b>1</b><b>2</b><b>1</b></a>`,
}

func TestScannerAgreesWithEncodingXML(t *testing.T) {
	for _, doc := range documents {
		want, err := reference([]byte(doc))
		if err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		got, err := walk([]byte(doc))
		if err != nil {
			t.Errorf("%s: %v", doc, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", doc, d)
		}
	}
}

func TestScannerRefuses(t *testing.T) {
	for _, doc := range []string{
		``, `text`, `<a>`, `<a></b>`, `<a><b></a></b>`, `<a/><b/>`, `<a/>text`, `<a>text<b/></a>`, `<a><b/>text</a>`, `<a>&nbsp;</a>`, `<a>&#xD800;</a>`, `<a>&lt</a>`,
		`<a b="></a>`, `<a`, `<a/`, `</a>`, `<1/>`, `< a/>`, "<a>\x00</a>", "<a>\xff</a>", `<a>]]></a>`, `<!DOCTYPE a><a/>`, `<a><![CDATA[x]]></a>`, `<a><!-- </a>`,
		`<a b<c/></a>`, `<a b/c></a>`, strings.Repeat("<a>", 100) + strings.Repeat("</a>", 100),
	} {
		if got, err := walk([]byte(doc)); err == nil {
			t.Errorf("%q was read as %s", doc, got)
		}
	}
}

func TestSkip(t *testing.T) {
	s := New([]byte(`<r><a><b>1</b><c/>text</a><d>2</d></r>`))
	var got []string
	for s.Child() { // the root
		for s.Child() {
			if string(s.Name()) == "d" {
				got = append(got, s.Text())
				continue
			}
			s.Skip()
		}
	}
	if err := s.End(); err != nil || len(got) != 1 || got[0] != "2" {
		t.Errorf("got %v, %v", got, err)
	}
}

// FuzzScanner: what the scanner reads, encoding/xml reads the same way. It may
// refuse more, for the caller then asks a decoder that knows all of XML.
func FuzzScanner(f *testing.F) {
	for _, doc := range documents {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := walk(data)
		if err != nil {
			return
		}
		want, err := reference(data)
		if err != nil {
			return // the scanner passes over what encoding/xml checks in attributes, names and declarations
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", data, d)
		}
	})
}
