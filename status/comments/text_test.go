package comments

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/reconciler/simulate/timeline"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/visible"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/statustest"
)

var updateGoldens = flag.Bool("update", false, "write the goldens")

var addresses = map[forge.Kind]string{
	forge.GitHub: "https://github.com/platform/fleet/pull/12", forge.GitLab: "https://gitlab.example.com/company/platform/fleet/-/merge_requests/12",
	forge.Gitea: "https://git.example.com/platform/fleet/pulls/12",
}

func TestPullComment(t *testing.T) {
	for dialect, address := range addresses {
		for name, p := range statustest.Pulls() {
			p.WebURL = address
			o := TextOptions{Instance: "production", Forge: forge.ProfileOf(dialect)}
			if name == "long" {
				o.Limit = 20_000
			}
			got := Text(p, o)
			golden(t, name+"."+string(dialect)+".md", got)
		}
	}
}

// golden compares a comment with the one in a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "comment", name)
	if *updateGoldens {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestEqualPlansHaveEqualComments(t *testing.T) {
	a, b := statustest.Planned(), statustest.Planned()
	b.PlannedAt = statustest.Noon
	for _, r := range b.Reports {
		r.StartedAt, r.Duration = statustest.Noon, 5
	}
	o := TextOptions{Instance: "production", Forge: forge.ProfileOf(forge.GitHub)}
	if diff := cmp.Diff(Text(a, o), Text(b, o)); diff != "" {
		t.Error(diff)
	}
}

// TestCommentsAreShortened holds every length against the limit.
func TestCommentsAreShortened(t *testing.T) {
	p := statustest.Pulls()["long"]
	p.WebURL = addresses[forge.GitHub]
	lead := "\n**Merging this changes 203 of 214 targets:** "
	seen := map[string]bool{}
	for limit := leastLimit; limit < 1_000_000; limit = limit*8/5 + 1 {
		got := Text(p, TextOptions{Instance: "production", Forge: forge.ProfileOf(forge.GitHub), Limit: limit})
		if len(got) > limit {
			t.Fatalf("%d bytes for a limit of %d", len(got), limit)
		}
		if !strings.HasPrefix(got, report.PullMarker("production", "fleet")+report.DigestMarker(p.Digest)+lead) {
			t.Fatalf("limit %d: begins with %.200q", limit, got)
		}
		if strings.Count(got, "<details") != strings.Count(got, "</details>") {
			t.Fatalf("limit %d: folds are not closed", limit)
		}
		note := regexp.MustCompile(`Shortened to fit: (.*) (is|are) left out`).FindStringSubmatch(got)
		if note == nil {
			seen["whole"] = true
		} else {
			seen[note[1]] = true
		}
	}
	if len(seen) < 4 || !seen["whole"] {
		t.Errorf("seen: %v", seen)
	}
}

// texts replaces everything in a pull request that comes from outside.
func texts(t *rapid.T) report.Pull {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"</details>", "|", "\n\n# heading", "```\n", "`", "@team", "#1", "!1", "GH-1", "<script>", "<!-- weir:x:y -->", "-->", "/close", "](javascript:x)",
		"https://evil.example", "\\", "a|b\\|c", "$x$", "&lt;", "* x\n* y", "<details>", "\u202e", "[a](b)", "www.evil.example",
	}), rapid.StringMatching("[-@#!|`<>/\\\\\\[\\](){}*_:. \na-c0-3]{0,30}"))
	draw := func(name string) string {
		n := rapid.IntRange(1, 3).Draw(t, name+" parts")
		var b strings.Builder
		for range n {
			b.WriteString(text.Draw(t, name))
		}
		return b.String()
	}
	p := statustest.Planned()
	p.State = rapid.SampledFrom([]report.PullState{report.PullPlanned, report.PullFailing, report.PullConflict, report.PullWaiting, report.PullMerged, report.PullClosed, report.PullUnaffected}).Draw(t, "state")
	p.Title, p.Author, p.Reason, p.Stale, p.Approved = draw("title"), draw("author"), draw("reason"), draw("stale"), draw("approved")
	p.BaseRef, p.HeadSHA, p.MergeSHA, p.Digest, p.PageURL = draw("ref"), draw("head"), draw("merge"), draw("digest"), "https://w.example/"+draw("page")
	p.WebURL = rapid.SampledFrom([]string{addresses[forge.GitHub], "https://evil.example/)[x](y)/pull/1", "javascript:x"}).Draw(t, "web") + draw("web")
	p.Forecast = &report.Forecast{Command: draw("command")}
	if rapid.Bool().Draw(t, "foreseen") {
		foreseen := statustest.Foreseen()
		foreseen.Why, foreseen.Doubts, foreseen.Assumptions = draw("cut"), []string{draw("doubt")}, []timeline.Assumption{{What: draw("assumption")}}
		foreseen.Milestones[0].Text, foreseen.Milestones[0].Target = draw("milestone"), draw("milestone of")
		foreseen.Waiting = []timeline.Wait{{Target: draw("waiting"), Hold: draw("hold"), Why: draw("why it waits"), Person: true}}
		foreseen.Outcome = rapid.SampledFrom([]string{timeline.Converged, timeline.Waits, timeline.Failed, timeline.Incomplete}).Draw(t, "outcome")
		p.Forecast = &report.Forecast{Timeline: foreseen}
	}
	p.Gone, p.Differs, p.Uncompared = []string{draw("gone")}, []string{draw("differs")}, []string{draw("untold")}
	r := p.Reports[0]
	r.Target, r.Account, r.Region = draw("target"), draw("account"), draw("region")
	s := &r.Plan.Steps[0]
	s.Pool, s.Name, s.Reason, s.HeldReason, s.Held = draw("pool"), draw("name"), draw("why"), draw("held"), step.HeldPaused
	s.Changes[0] = step.Change{Field: draw("field"), From: draw("from"), To: map[string]any{draw("key"): draw("to")}, Origin: &diag.Position{File: draw("file"), Line: 3}}
	r.Plan.Diagnostics = diag.List{{Severity: diag.Error, Code: draw("code"), Summary: draw("summary"), Detail: draw("detail"), Object: draw("object"), Field: draw("at"),
		Position: diag.Position{File: draw("place")}, Related: []diag.Related{{Message: draw("related")}}}}
	return p
}

// withoutCode leaves code spans out of a line: each ends at the next run of as many
// backticks as it begins with.
func withoutCode(line string) string {
	var b strings.Builder
	for i := 0; i < len(line); {
		if line[i] == '\\' && i+1 < len(line) {
			b.WriteString(line[i : i+2])
			i += 2
			continue
		}
		if line[i] != '`' {
			b.WriteByte(line[i])
			i++
			continue
		}
		run := func(at int) (n int) {
			for at+n < len(line) && line[at+n] == '`' {
				n++
			}
			return n
		}
		n := run(i)
		end := i + n
		for end < len(line) && run(end) != n {
			end += max(1, run(end))
		}
		if end >= len(line) {
			b.WriteString(line[i:])
			break
		}
		b.WriteString("code")
		i = end + n
	}
	return b.String()
}

// TestNothingBreaksOutOfAComment holds every line against those that a comment has.
func TestNothingBreaksOutOfAComment(t *testing.T) { rapid.Check(t, nothingBreaksOut) }

func FuzzComment(f *testing.F) { f.Fuzz(rapid.MakeFuzz(nothingBreaksOut)) }

func nothingBreaksOut(t *rapid.T) {
	shape := regexp.MustCompile(`^(|<!-- weir:[^<> ]*:[^<> ]* -->(<!-- weir:digest:[0-9a-f]{64} -->)?|\*\*.*|> \*\*.*|\|.* \|| *- .*|<details( open)?>|<summary><b>[^<>]*</b>: [^<>]*</summary>|</details>|(No|What|Shortened|This|Approved|Commit|Base|Merged|Digest|\[?[A-Z]).*)$`)
	p := texts(t)
	dialect := rapid.SampledFrom([]forge.Kind{forge.GitHub, forge.GitLab, forge.Gitea}).Draw(t, "dialect")
	got := Text(p, TextOptions{Instance: "prod", Forge: forge.ProfileOf(dialect), Limit: rapid.SampledFrom([]int{0, 1000, 3000, 6000}).Draw(t, "limit")})
	depth, bars := 0, 0
	for i, line := range strings.Split(got, "\n") {
		if !shape.MatchString(line) {
			t.Fatalf("line %d: %q", i, line)
		}
		// The blank without width is weir's own: it takes references apart.
		if strings.ContainsFunc(strings.ReplaceAll(line, "\u200b", ""), visible.Hidden) {
			t.Fatalf("line %d hides something: %q", i, line)
		}
		if (i == 0) != strings.HasPrefix(line, "<!--") {
			t.Fatalf("line %d: a marker out of place: %q", i, line)
		}
		if strings.HasPrefix(line, "<details") {
			depth++
		} else if line == "</details>" {
			depth--
		}
		if depth < 0 || depth > 1 {
			t.Fatalf("line %d: folds are broken", i)
		}
		if strings.HasPrefix(line, "|") {
			if n := len(regexp.MustCompile(`(?:^|[^\\])(?:\\\\)*\|`).FindAllString(line, -1)); i > 0 && bars > 0 && n != bars {
				t.Fatalf("line %d: %d bars in %q", i, n, line)
			} else {
				bars = n
			}
		} else {
			bars = 0
		}
		if strings.HasPrefix(line, "<") {
			continue
		}
		// Outside of code, nothing from outside is HTML, a mention or a reference.
		bare := withoutCode(line)
		bare = regexp.MustCompile(`\]\(https?://[^() ]*\)`).ReplaceAllString(bare, "]")
		if found := regexp.MustCompile(`(?:^|[^\\])(?:\\\\)*[<@#]|@[a-z0-9]|#[0-9]|![0-9]|://|(?i:www\.)`).FindString(strings.ReplaceAll(bare, "**", "")); found != "" {
			t.Fatalf("line %d: %q in %q", i, found, line)
		}
	}
	if depth != 0 {
		t.Fatal("a fold is open")
	}
}

// TestRepositoryOfAComment: no address that a forge gives can break out of a link.
func TestRepositoryOfAComment(t *testing.T) {
	for raw, want := range map[string]string{
		"https://git.example.com/o/(r)/pulls/7":   "https://git.example.com/o/%28r%29",
		"https://u:p@git.example.com/o/r/pulls/7": "",
		"https://a\"b/o/r/pulls/7":                "",
		"javascript:alert(1)//pulls/7":            "",
	} {
		c := newComment(report.Pull{WebURL: raw}, TextOptions{Forge: forge.ProfileOf(forge.Gitea)})
		if got := c.links.Repository(); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}
