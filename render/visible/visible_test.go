package visible

import (
	"encoding/json"
	"html"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"plain text, ü, 日本語, עברית, 🙂❤️": "plain text, ü, 日本語, עברית, 🙂❤️",
		"two\nlines\tand more":           "two\nlines\tand more",
		"a\u202eb\u202cc":                "a<U+202E>b<U+202C>c",
		"\u202a\u202b\u202d\u2066\u2067": "<U+202A><U+202B><U+202D><U+2066><U+2067>",
		"\u2068\u2069\u200e\u200f\u061c": "<U+2068><U+2069><U+200E><U+200F><U+061C>",
		"ad\u200bm\u200ci\u200dn\ufeff":  "ad<U+200B>m<U+200C>i<U+200D>n<U+FEFF>",
		"\x00\x1b[31m\x7f\u0085\u009b":   "<U+0000><U+001B>[31m<U+007F><U+0085><U+009B>",
		"soft\u00adhyphen \u3164 \u115f": "soft<U+00AD>hyphen <U+3164> <U+115F>",
		"tag\U000e0041 \u2800 \ufe01":    "tag<U+E0041> <U+2800> <U+FE01>",
	} {
		if got := Text(in); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
}

// TestNothingStaysHidden: whatever a text holds, a reader sees all of it, and where a
// program reads it, it is the same.
func TestNothingStaysHidden(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("a <>&\"\\\u202e\u2066\u200b\u061c\ufeff\u3164\U000e0041\x1b\u0085é")))).Draw(t, "text")
		if !utf8.ValidString(in) {
			return
		}
		js, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		quoted, err := yaml.Marshal(&yaml.Node{Kind: yaml.ScalarNode, Style: yaml.DoubleQuotedStyle, Value: in})
		if err != nil {
			t.Fatal(err)
		}
		shown := map[string]string{"text": Text(in), "HTML": HTML(html.EscapeString(in)), "JSON": JSON(string(js)), "YAML": YAML(string(quoted))}
		for form, text := range shown {
			if strings.ContainsFunc(text, func(r rune) bool { return Hidden(r) && !strings.ContainsRune("\n\r\t", r) }) {
				t.Fatalf("%q as %s hides something: %q", in, form, text)
			}
		}
		if html.UnescapeString(shown["HTML"]) != Text(in) {
			t.Fatalf("%q as HTML is %q", in, shown["HTML"])
		}
		var fromJSON, fromYAML string
		if err := json.Unmarshal([]byte(shown["JSON"]), &fromJSON); err != nil || fromJSON != in {
			t.Fatalf("%q as JSON is %s: %q, %v", in, shown["JSON"], fromJSON, err)
		}
		if err := yaml.Unmarshal([]byte(shown["YAML"]), &fromYAML); err != nil || fromYAML != in {
			t.Fatalf("%q as YAML is %s: %q, %v", in, shown["YAML"], fromYAML, err)
		}
	})
}
