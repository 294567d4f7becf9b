package deploy

import (
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/launch"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/events/kinds"
)

// documents are all Markdown files of the project that a reader is led to.
func documents(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir("..", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (e.Name() == ".git" || e.Name() == "testdata" || e.Name() == "dist") {
			return fs.SkipDir
		}
		if e.IsDir() || !strings.HasSuffix(name, ".md") {
			return nil
		}
		content, err := os.ReadFile(name)
		out[filepath.ToSlash(strings.TrimPrefix(name, ".."+string(filepath.Separator)))] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var (
	fenced      = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```[ \t]*$")
	codeSpan    = regexp.MustCompile("`[^`\n]*`")
	htmlComment = regexp.MustCompile(`(?s)<!--.*?-->`)
	link        = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading     = regexp.MustCompile(`(?m)^#{1,6} +(.+?)\s*$`)
	anchorTag   = regexp.MustCompile(`<a id="([^"]+)">`)
)

// prose is a page without code and comments.
func prose(text string) string {
	return codeSpan.ReplaceAllString(htmlComment.ReplaceAllString(fenced.ReplaceAllString(text, ""), ""), "")
}

// anchors are the fragments that a page can be entered at: those that forges make
// of headings, and those that are written down.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		var b strings.Builder
		for _, r := range strings.ToLower(m[1]) {
			switch {
			case r == ' ' || r == '-':
				b.WriteRune('-')
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_':
				b.WriteRune(r)
			}
		}
		out[b.String()] = true
	}
	for _, m := range anchorTag.FindAllStringSubmatch(text, -1) {
		out[m[1]] = true
	}
	return out
}

// TestLinks follows each link between pages and to files.
func TestLinks(t *testing.T) {
	pages := documents(t)
	for name, text := range pages {
		for _, m := range link.FindAllStringSubmatch(prose(text), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			u, err := url.Parse(m[1])
			if err != nil {
				t.Errorf("%s: %s: %v", name, m[1], err)
				continue
			}
			file := name
			if u.Path != "" {
				file = path.Join(path.Dir(name), u.Path)
			}
			if _, err := os.Stat(filepath.Join("..", filepath.FromSlash(file))); err != nil {
				t.Errorf("%s: the link %s leads to nothing", name, m[1])
				continue
			}
			if target, ok := pages[file]; ok && u.Fragment != "" && !anchors(target)[u.Fragment] {
				t.Errorf("%s: %s has no heading %s", name, file, u.Fragment)
			}
		}
	}
}

// TestPagesAreFound wants every page of the documentation in its list.
func TestPagesAreFound(t *testing.T) {
	pages := documents(t)
	listed := map[string]bool{}
	for _, list := range []string{"deploy/docs/README.md", "deploy/docs/reference/kinds/README.md", "deploy/docs/forges/README.md"} {
		for _, m := range link.FindAllStringSubmatch(pages[list], -1) {
			listed[path.Join(path.Dir(list), m[1])] = true
		}
	}
	for name := range pages {
		if strings.HasPrefix(name, "deploy/docs/") && name != "deploy/docs/README.md" && !listed[name] {
			t.Errorf("%s is in no list of pages", name)
		}
	}
}

// readers are words that address the readers of a page.
var readers = regexp.MustCompile(`(?i)\b(?:you|your|operators|reviewers|authors|developers|newcomers|readers)\b`)

// TestPagesSayWhomTheyAreFor checks that every page has a title and then a short opening, which addresses its
// readers.
func TestPagesSayWhomTheyAreFor(t *testing.T) {
	const shortest, longest = 12, 55 // words
	for name, text := range documents(t) {
		if !strings.HasPrefix(name, "deploy/docs/") || strings.HasPrefix(name, "deploy/docs/reference/") {
			continue
		}
		title, rest, _ := strings.Cut(text, "\n\n")
		if !strings.HasPrefix(title, "# ") || strings.Contains(title, "\n") {
			t.Errorf("%s does not begin with a title", name)
		}
		opening, _, _ := strings.Cut(rest, "\n")
		if !readers.MatchString(opening) {
			t.Errorf("%s: the opening does not say who the page is for: %q", name, opening)
		}
		if n := len(strings.Fields(opening)); n < shortest || n > longest {
			t.Errorf("%s: the opening has %d words, want %d to %d: %q", name, n, shortest, longest, opening)
		}
	}
}

// plainWords are words for which there are shorter ones.
var plainWords = map[string]string{
	"utilize": "use", "leverage": "use", "simply": "", "just": "", "easily": "", "seamless": "", "robust": "", "powerful": "", "obviously": "", "basically": "",
	"please": "", "cutting-edge": "", "facilitate": "help", "prior to": "before", "in order to": "to", "e.g.": "such as", "i.e.": "that is", "etc.": "and more",
	"don't": "do not", "doesn't": "does not", "can't": "cannot", "isn't": "is not", "won't": "will not",
}

var sentenceEnd = regexp.MustCompile(`[.:;!?](\s|$)|\n`)

// TestPlainWords keeps the pages readable: no puffed-up words, no contractions,
// and no sentence of more than 45 words.
func TestPlainWords(t *testing.T) {
	const longest = 45
	for name, text := range documents(t) {
		if name != "README.md" && !strings.HasPrefix(name, "deploy/docs/") || strings.HasPrefix(name, "deploy/docs/reference/") {
			continue
		}
		text = link.ReplaceAllString(prose(text), "]")
		for word, better := range plainWords {
			if regexp.MustCompile(`(?i)(^|[^\w-])` + regexp.QuoteMeta(word) + `($|[^\w-])`).MatchString(text) {
				t.Errorf("%s: %q: write %q", name, word, better)
			}
		}
		for _, s := range sentenceEnd.Split(text, -1) {
			for _, cell := range strings.Split(s, "|") {
				if n := len(strings.Fields(cell)); n > longest {
					t.Errorf("%s: a sentence of %d words: %s", name, n, strings.TrimSpace(cell))
				}
			}
		}
	}
}

// TestRunbook wants a line that says what to do for each alert, and none for an
// alert that there is not.
func TestRunbook(t *testing.T) {
	const name = "docs/operations/monitoring.md"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile("prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| (Weir\w+) \| \S.{20,} \|$`).FindAllStringSubmatch(string(page), -1) {
		lines[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(string(rules), -1) {
		if !lines[m[1]] {
			t.Errorf("%s does not say what to do about %s", name, m[1])
		}
		delete(lines, m[1])
	}
	for alert := range lines {
		t.Errorf("%s: there is no alert %s", name, alert)
	}
}

// seenWords are what the first column of the troubleshooting may name: codes of
// diagnostics, metrics, kinds of events, phases and holds.
var seenWords = regexp.MustCompile("`(weir_[a-z_]+)[^`]*`|`([a-z]+(?:-[a-z0-9]+)+)`|`held: ([a-z-]+)`")

// TestSymptoms wants every code, metric, event and hold that the troubleshooting
// names to be one that there is, and enough of them.
func TestSymptoms(t *testing.T) {
	page, err := os.ReadFile("docs/operations/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := os.ReadFile("prometheus/METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"missing-ref": true, "launch-failed": true, plan.FailureRefused: true, plan.FailureChanged: true} // of sources and pools, and no diagnostics
	for _, r := range diag.Rules() {
		known[r.Code] = true
	}
	for _, k := range kinds.All() {
		known[k] = true
	}
	for _, w := range step.Waits {
		known["held: "+string(w.Hold)] = true
	}
	symptoms := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.Contains(line, "---") || strings.Contains(line, "What you see") {
			continue
		}
		symptoms++
		for _, m := range seenWords.FindAllStringSubmatch(cells[1], -1) {
			switch {
			case m[1] != "" && !strings.Contains(string(metrics), "`"+m[1]+"`"):
				t.Errorf("there is no metric %s: %s", m[1], line)
			case m[2] != "" && !known[m[2]]:
				t.Errorf("there is no code or event %s: %s", m[2], line)
			case m[3] != "" && !known["held: "+m[3]]:
				t.Errorf("nothing is held for %s: %s", m[3], line)
			}
		}
	}
	if symptoms < 25 {
		t.Errorf("%d symptoms, want 25 and more", symptoms)
	}
}

// TestTokensNeed holds what the pages say of tokens against what the errors of a
// token name that may not do something.
func TestTokensNeed(t *testing.T) {
	page, err := os.ReadFile("docs/forges/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var sources strings.Builder
	files, err := filepath.Glob("../status/forge/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(f, "_test.go") {
			sources.Write(text)
		}
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile(`\b(?:read|write|repo):(?:repository|issue|user|status)\b|\\"((?:Commit statuses|Pull requests|Metadata): [a-z ]+)\\"|scope (api|repo)\b`).FindAllStringSubmatch(sources.String(), -1) {
		named[strings.TrimPrefix(strings.Trim(m[0], `\"`), "scope ")] = true
	}
	if len(named) < 8 {
		t.Fatalf("few permissions are named: %v", named)
	}
	for permission := range named {
		// A role that may write may also read.
		if !strings.Contains(string(page), strings.ReplaceAll(permission, `\"`, "")) {
			t.Errorf("docs/forges/README.md does not name %q, which an error does", permission)
		}
	}
	table := string(page)[strings.Index(string(page), "| GitHub | \"Contents"):]
	table, _, _ = strings.Cut(table, "\n\n")
	for _, m := range regexp.MustCompile("`([a-z_:]+)`|\"([A-Z][a-z ]+: [a-z ]+)\"").FindAllStringSubmatch(table, -1) {
		permission := m[1] + m[2]
		if permission == "read_repository" || permission == "Contents: read" {
			continue // of Git itself, whose refusals name none
		}
		if !named[permission] {
			t.Errorf("docs/forges/README.md names %q, which no error does", permission)
		}
	}
}

// TestAnnotations wants every annotation and tag of weir's to be on its page, and
// no other.
func TestAnnotations(t *testing.T) {
	page, err := os.ReadFile("docs/reference/annotations.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"weir.dev/delete": true}
	for _, v := range []string{
		observed.TagOwner, observed.TagTarget, observed.TagSource, observed.TagPool, observed.TagLaunchConfig, observed.TagPrune, observed.TagKeep, observed.TagKeys, observed.TagCluster, observed.TagDelete, observed.TagHooks, observed.TagSuspended,
		observed.TagRevision, observed.TagSince, observed.TagAdopted,
	} {
		known[v] = true
	}
	code, err := os.ReadFile("../render/manifest/kinds/annotations.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`GroupWeir \+ "(/[a-z-]+)"`).FindAllStringSubmatch(string(code), -1) {
		known["weir.dev"+m[1]] = true
	}
	delete(known, "weir.dev/architecture") // known, and carried by no version yet
	if len(known) < 14 {
		t.Fatalf("few are known: %v", known)
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`(weir\\.dev/[a-z-]+)`").FindAllStringSubmatch(string(page), -1) {
		named[m[1]] = true
		if !known[m[1]] {
			t.Errorf("there is no %s", m[1])
		}
	}
	for key := range known {
		if !named[key] {
			t.Errorf("docs/reference/annotations.md does not name %s", key)
		}
	}
}

// TestLaunchCausesAreListed holds the page about trouble to what weir says of
// machines that do not start.
func TestLaunchCausesAreListed(t *testing.T) {
	page := documents(t)["deploy/docs/operations/troubleshooting.md"]
	for _, c := range launch.Causes() {
		row := "| `" + c.Code + "` | " + c.Text + " | " + strings.ReplaceAll(c.Hint, "*", `\*`) + " |"
		if !strings.Contains(page, row) {
			t.Errorf("troubleshooting.md lacks the row\n%s", row)
		}
	}
}
