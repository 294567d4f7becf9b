package forgehttp

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// TestLongTextsAreCut: what is left is the same document with the beginnings of its
// texts, however it arrives.
func TestLongTextsAreCut(t *testing.T) {
	for name, text := range map[string]string{
		"short": "a\"b\\c", "letters": strings.Repeat("x", 3*longestText), "two bytes": "a" + strings.Repeat("ü", longestText), "four bytes": "ab" + strings.Repeat("😀", longestText),
		"quotes": strings.Repeat(`"`, longestText), "backslashes": "x" + strings.Repeat(`\`, longestText), "control": strings.Repeat("\x01", longestText), "as long": strings.Repeat("y", longestText),
	} {
		for _, byByte := range []bool{false, true} {
			body, err := json.Marshal([]any{map[string]any{"a": text, "b": 7}, text, "end"})
			if err != nil {
				t.Fatal(err)
			}
			var r io.Reader = strings.NewReader(string(body))
			if byByte {
				r = iotest.OneByteReader(r)
			}
			got, err := io.ReadAll(&clipped{r: r})
			var out []any
			if err != nil || json.Unmarshal(got, &out) != nil || len(out) != 3 || out[2] != "end" || out[0].(map[string]any)["b"] != 7.0 {
				t.Fatalf("%s: %d bytes, %v", name, len(got), err)
			}
			for _, said := range []string{out[0].(map[string]any)["a"].(string), out[1].(string)} {
				if !strings.HasPrefix(text, said) || !utf8.ValidString(said) || len(said) > longestText+6 || len(text) < longestText/6 && said != text || len(said) < min(len(text), longestText/6) {
					t.Errorf("%s: %d bytes of %d", name, len(said), len(text))
				}
			}
			if len(got) > 2*longestText+100 {
				t.Errorf("%s: %d bytes are passed on", name, len(got))
			}
		}
	}
}

// TestAPageOfLongTexts: strangers fill a page of a hundred descriptions.
func TestAPageOfLongTexts(t *testing.T) {
	page := "[" + strings.Repeat(`{"body":"`+strings.Repeat("x", 400<<10)+`"},`, 99) + "{}]"
	got, err := io.ReadAll(&clipped{r: strings.NewReader(page)})
	if err != nil || len(got) > 99*(longestText+20) || !json.Valid(got) {
		t.Errorf("%d of %d bytes, %v", len(got), len(page), err)
	}
}
