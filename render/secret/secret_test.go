package secret

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render/visible"
	"pgregory.net/rapid"
)

func TestRedact(t *testing.T) {
	s := New("hunter2!", "short", "true", "  padded-value\n", "line one of a key\nuser: Xy7-zq!9w0\npass: \"Qz8-kw!4v1\"\n-----BEGIN RSA PRIVATE KEY-----\n").Finder()
	for in, want := range map[string]string{
		"":                         "",
		"nothing here":             "nothing here",
		"short and true":           "short and true",
		"the word is hunter2!":     "the word is (redacted)",
		"hunter2!hunter2!":         "(redacted)(redacted)",
		"a padded-value":           "a (redacted)",
		"   - line one of a key":   "   - (redacted)",
		"Xy7-zq!9w0":               "(redacted)",
		"pass Qz8-kw!4v1":          "pass (redacted)",
		"-----BEGIN RSA PRIVATE K": "-----BEGIN RSA PRIVATE K",
	} {
		if got := s.Redact(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	if got := (*Set)(nil).Finder().Redact("hunter2!"); got != "hunter2!" {
		t.Errorf("the empty set made %q", got)
	}
}

// TestRedactEveryForm holds for any value in any of the forms that outputs have.
func TestRedactEveryForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := strings.TrimSpace(rapid.StringMatching(`[ -~äöü€\x{200b}\x{202e}]{9,60}`).Draw(t, "value"))
		if len(v) < 9 || strings.Contains(Mask, v) {
			t.Skip("too short")
		}
		before, after := rapid.StringMatching(`[a-z]{0,5}`).Draw(t, "before"), rapid.StringMatching(`[a-z]{0,5}`).Draw(t, "after")
		js, _ := json.Marshal(before + v + after)
		s := New(v).Finder()
		for name, text := range map[string]string{
			"raw": before + v + after, "query": url.QueryEscape(before + v), "path": url.PathEscape(v + after), "html": html.EscapeString(before + v + after),
			"json": string(js), "go": fmt.Sprintf("%q", before+v+after), "base64": base64.StdEncoding.EncodeToString([]byte(before + v + after)),
			"text that is shown": visible.Text(before + v + after), "page": visible.HTML(html.EscapeString(before + v + after)), "json that is shown": visible.JSON(string(js)),
			"base64url": base64.RawURLEncoding.EncodeToString([]byte(before + v + after)),
		} {
			got := s.Redact(text)
			if !strings.Contains(got, Mask) {
				t.Errorf("%s: %q stayed %q", name, text, got)
			}
			if strings.Contains(got, v) {
				t.Errorf("%s: %q became %q", name, text, got)
			}
		}
		if !s.In(before + v + after) {
			t.Error("In does not see it")
		}
	})
}

func TestIn(t *testing.T) {
	s := New("kubernetes", "S3cr3tPw", "a-rather-long-lower-case-name").Finder()
	for text, want := range map[string]bool{
		"kubernetes":                            true,
		"kubernetes.io/cluster/prod":            false,
		"pw=S3cr3tPw;":                          true,
		"s3cr3tpw":                              false,
		"in a-rather-long-lower-case-name here": true,
		base64.StdEncoding.EncodeToString([]byte("x:S3cr3tPw:y")): true,
		"": false,
	} {
		if got := s.In(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if (*Set)(nil).Finder().In("anything at all") {
		t.Error("the empty set found something")
	}
}

func TestUnion(t *testing.T) {
	if Union() != nil || Union(nil, New("x")).Len() != 0 {
		t.Error("a union of nothing is something")
	}
	u := Union(New("value-one"), nil, New("value-two", "value-one"))
	if u.Len() != 2 || u.Finder().Redact("value-one value-two") != "(redacted) (redacted)" {
		t.Errorf("union of %d: %s", u.Len(), u.Finder().Redact("value-one value-two"))
	}
}

// The finder finds a value that sets share until the last of them is taken out, and then holds nothing.
func TestFinderForgets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[ab]{5,8}(\n[ab=]{20}|)`)
		f := &Finder{}
		var in []*Set
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			if len(in) > 0 && rapid.Bool().Draw(t, "remove") {
				i := rapid.IntRange(0, len(in)-1).Draw(t, "which")
				f.Remove(in[i])
				in = slices.Delete(in, i, i+1)
			} else {
				s := New(rapid.SliceOfN(value, 0, 3).Draw(t, "values")...)
				f.Add(s)
				in = append(in, s)
			}
			whole := Union(in...)
			text := rapid.StringMatching(`[ab=]{0,60}`).Draw(t, "text")
			if got, want := f.Redact(text), whole.Finder().Redact(text); got != want || f.Len() != whole.Len() {
				t.Fatalf("%q became %q with %d values, want %q with %d", text, got, f.Len(), want, whole.Len())
			}
		}
		for _, s := range in {
			f.Remove(s)
		}
		if f.Len() != 0 || len(f.forms)+len(f.lengths) != 0 {
			t.Errorf("%d values and %d forms are left", f.Len(), len(f.forms))
		}
	})
}
