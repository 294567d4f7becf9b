package wording

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/step"
	"pgregory.net/rapid"
)

func TestEscapeTakesReferencesApart(t *testing.T) {
	for in, want := range map[string]string{
		"plain words, 50 % of it": "plain words, 50 \\% of it",
		"@platform":               "\\@|platform",
		"see #12 and !7":          "see \\#|12 and \\!|7",
		"fixes gh-12, GH-1":       "fixes gh|-12, GH|-1",
		"TEAM-12 in eu-central-1": "TEAM|-12 in eu-central-1",
		"https://a.example":       "https:|//a.example",
		"www.example.com":         "www|.example.com",
		"a@b.example":             "a\\@|b.example",
		"a | b":                   "a \\| b",
		"</details>":              "\\</details\\>",
		"[x](y)":                  "\\[x\\](y)",
		"[issue:1] [bad]":         "\\[issue:|1\\] \\[bad\\]",
		"$Latest":                 "\\$|Latest",
		"two\nlines\x1b":          "two lines\\<U+001B\\>",
		"live\u202egnp.exe":       "live\\<U+202E\\>gnp.exe",
		"a\u200bdmin":             "a\\<U+200B\\>dmin",
		"arn:aws:iam::1:role/r":   "arn:aws:iam::1:role/r",
		"\xff":                    "\uFFFD",
	} {
		want = strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(want, "\\|", "\x00"), "|", blank), "\x00", "\\|")
		want = strings.ReplaceAll(want, "\\%", "%")
		if got := Escape(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// acted is what forges make something of in a text that is shown.
var acted = regexp.MustCompile(`[@#!~%&$^][\pL\p{Nd}_"']|(?i:\bgh-[0-9])|\b[A-Z][A-Z0-9]*-[0-9]|://|(?i:www\.)`)

func anything() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.StringMatching("[-@#!~%&$^|`<>/\\\\\\[\\](){}*_:.wWgGhHA-C0-3\n \"']{0,40}"))
}

func TestNothingActsInEscapedText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anything().Draw(t, "text")
		got := Escape(in)
		shown := regexp.MustCompile(`\\(.)`).ReplaceAllString(got, "$1")
		if found := acted.FindString(shown); found != "" {
			t.Fatalf("%q gives %q, in which a forge sees %q", in, got, found)
		}
		if bare := regexp.MustCompile("(^|[^\\\\])(\\\\\\\\)*[`|<>\\[\\]*_]").FindString(got); bare != "" {
			t.Fatalf("%q gives %q, with %q", in, got, bare)
		}
		if strings.ReplaceAll(shown, blank, "") != strings.ReplaceAll(Clean(in), blank, "") {
			t.Fatalf("%q is shown as %q", in, shown)
		}
		inside := HTML(in)
		if strings.ContainsAny(inside, "<>\n") || acted.MatchString(html.UnescapeString(inside)) {
			t.Fatalf("%q gives %q in HTML", in, inside)
		}
	})
}

// TestARNsAreWhole: what somebody approves is not cut where two of them are still alike.
func TestARNsAreWhole(t *testing.T) {
	path := "arn:aws:iam::123456789012:role/" + strings.Repeat("very-long-path/", 30)
	group := "arn:aws-us-gov:elasticloadbalancing:us-gov-west-1:123456789012:targetgroup/" + strings.Repeat("x", 32) + "/0123456789abcdef"
	var groups []string
	for i := range 50 {
		groups = append(groups, strings.ReplaceAll(group, "x", string(rune('a'+i%26))))
	}
	for _, c := range []step.Change{{From: path + "one", To: path + "two"}, {From: groups[:49], To: groups}} {
		text := Transition(step.Update, c)
		if text != Whole(step.Update, c) || strings.Contains(text, "…") {
			t.Errorf("cut: %s", text)
		}
	}
	if text := Value(strings.Repeat("long ", 100)); len([]rune(text)) != 100 || !strings.HasSuffix(text, "…") {
		t.Errorf("a text without one has %d characters", len([]rune(text)))
	}
	if text := Value("arn:aws:" + strings.Repeat("y", 1<<20)); len([]rune(text)) != longestWhole {
		t.Errorf("what only looks like one has %d characters", len([]rune(text)))
	}
}

func TestCodeCannotBeLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anything().Draw(t, "text")
		got := Code(in)
		if got == "–" {
			if strings.TrimSpace(Clean(in)) != "" {
				t.Fatalf("%q is lost", in)
			}
			return
		}
		fence := got[:len(got)-len(strings.TrimLeft(got, "`"))]
		inside, ok := strings.CutSuffix(got[len(fence):], fence)
		if !ok || fence == "" || strings.Contains(inside, fence) || strings.Contains(got, "\n") {
			t.Fatalf("%q gives %q", in, got)
		}
	})
}
