package status

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/visible"
	"github.com/weir-gitops/weir/status/forge"
)

var updateGoldens = flag.Bool("update", false, "write the goldens")

// planned is a pull request with steps of all kinds.
func planned() Pull {
	origin := func(file string, line int) *diag.Position { return &diag.Position{File: file, Line: line, Column: 7} }
	two := int32(67)
	rolling := report("prod-eu", pool("prod-eu", "web", sized(6, 6)), pool("prod-eu", "batch", sized(10, 10)))
	rolling.Plan.Steps = []step.Step{
		{Verb: step.Update, Resource: step.LaunchTemplate, Pool: "default/web", Name: "prod-eu-web", Reason: "instanceType m6i.large → c7g.large", Changes: []step.Change{
			{Field: "awsLaunchTemplate.instanceType", From: "m6i.large", To: "c7g.large", Origin: origin("overlays/prod-eu/web.yaml", 9)},
			{Field: "awsLaunchTemplate.rootVolume", To: map[string]any{"size": 64, "type": "gp3"}, Origin: origin("base/pool (new).yaml", 31)},
			{Field: "userData.write_files[/etc/node.conf]", From: "4 lines", To: "6 lines (+3 -1)"},
		}},
		{Verb: step.Rollout, Resource: step.AutoScalingGroup, Pool: "default/web", Name: "prod-eu-web", Reason: "6 of 6 instances do not run version 5", Disruptive: true, Instances: 6,
			Do: step.StartRefresh{Group: "prod-eu-web", Preferences: intent.Refresh{MinHealthyPercentage: &two}}},
		{Verb: step.Rollout, Resource: step.AutoScalingGroup, Pool: "default/batch", Name: "prod-eu-batch", Reason: "10 of 10 instances do not run version 3", Disruptive: true, Instances: 10,
			Do: step.StartRefresh{Group: "prod-eu-batch"}, Held: step.HeldWindow, HeldReason: "opens on Monday at 08:00"},
	}
	rolling.Plan.Summary = plan.Summary{Rollout: 2, Unchanged: 3}
	rolling.Plan.Diagnostics = diag.List{
		{Severity: diag.Info, Code: "newer-image", Summary: "a newer image ami-0ccc is published; version 5 of the launch template prod-eu-web stays with ami-0bbb",
			Detail: "it is taken when the pool's launch configuration changes", Position: diag.Position{File: "base/pool.yaml", Line: 20}},
		{Severity: diag.Warning, Code: "default-network", Summary: "the default VPC is used", Object: "AWSMachinePool default/web", Field: "spec.subnets",
			Related: []diag.Related{{Position: diag.Position{File: "base/cluster.yaml", Line: 3}, Message: "no network is named here"}}},
	}
	other := report("prod-us")
	other.Plan.Steps = []step.Step{
		{Verb: step.Create, Resource: step.AutoScalingGroup, Pool: "default/edge", Name: "prod-us-edge", Reason: "the pool is new", Changes: []step.Change{{Field: "maxSize", To: 5}}},
		{Verb: step.Update, Resource: step.LaunchTemplate, LaunchConfig: "default/shared", Pools: []string{"default/a", "default/b"}, Name: "prod-us-shared", Reason: "new version", Later: true},
		{Verb: step.Replace, Resource: step.ManagedNodegroup, Pool: "default/gpu", Name: "gpu", Reason: "the disk size cannot be changed", Disruptive: true, Instances: 2, Changes: []step.Change{{Field: "diskSize", From: 20, To: 50}}},
		{Verb: step.Delete, Resource: step.AutoScalingGroup, Pool: "default/old", Name: "prod-us-old", Reason: "Git does not want it", Disruptive: true, Instances: 4, Held: step.HeldPruneLimit},
		{Verb: step.Adopt, Resource: step.AutoScalingGroup, Pool: "default/found", Name: "found", Reason: "annotated"},
		{Verb: step.PruneVersion, Resource: step.LaunchTemplate, Pool: "default/web", Name: "prod-us-web", Reason: "old versions 1, 2"},
		{Verb: step.Update, Resource: step.AutoScalingGroup, Pool: "default/web", Name: "prod-us-web", Reason: "maxSize 7 → 5", Drift: &step.Drift{Cause: "a user request"}, Changes: []step.Change{{Field: "maxSize", From: 7, To: 5}}},
	}
	other.Plan.Summary = plan.Summary{Create: 1, Update: 3, Replace: 1, Delete: 1}
	same := report("staging")
	same.Plan.Summary.Unchanged = 4
	return Pull{
		Source: "fleet", Number: 12, Title: "web: c7g instances", Author: "someone", HeadSHA: shaNew, BaseRef: "main", BaseSHA: shaOld,
		State: PullPlanned, Reports: []*plan.Report{rolling, other, same}, Gone: []string{"edge-2"}, Unaffected: 10,
		Digest: strings.Repeat("d1", 32), AsReviewed: true, PageURL: "https://weir.example.com/pulls/fleet/12",
	}
}

// pulls are pull requests of all states.
func pulls() map[string]Pull {
	bare := func(state PullState, reason string) Pull {
		p := planned()
		p.State, p.Reason, p.Reports, p.Gone, p.Digest, p.AsReviewed, p.Unaffected = state, reason, nil, nil, "", false, 14
		return p
	}
	with := func(change func(*Pull)) Pull {
		p := planned()
		change(&p)
		return p
	}
	failing := bare(PullFailing, "staging: overlays/staging/pool.yaml:12:5: error: awsLaunchTemplate.instanceTyp: unknown field")
	broken := report("staging")
	broken.Plan, broken.Diagnostics = nil, diag.List{unknownField()}
	failing.Reports = []*plan.Report{broken}
	long := planned()
	for i := range 200 {
		r := report("cluster-" + strings.Repeat("x", i%30) + "-" + string(rune('a'+i%26)))
		r.Plan.Steps, r.Plan.Summary = planned().Reports[0].Plan.Steps, planned().Reports[0].Plan.Summary
		long.Reports = append(long.Reports, r)
	}
	nothing := bare(PullPlanned, "")
	same := report("staging")
	same.Plan.Summary.Unchanged = 4
	nothing.Reports, nothing.Digest, nothing.Unaffected = []*plan.Report{same}, strings.Repeat("d2", 32), 13
	return map[string]Pull{
		"planned": planned(), "nothing": nothing, "unaffected": bare(PullUnaffected, ""), "failing": failing, "long": long,
		"conflict": bare(PullConflict, "update the branch: overlays/prod-eu/web.yaml was changed on both sides"),
		"fork":     bare(PullWaiting, "it comes from a fork: a maintainer may write the comment weir plan"),
		"draft":    bare(PullWaiting, "it is a draft: write the comment weir plan, or mark it ready for review"),
		"closed":   bare(PullClosed, ""),
		"stale":    with(func(p *Pull) { p.Stale = "prod-eu changed in AWS since" }),
		"approved": with(func(p *Pull) { p.Approved = "@maintainer" }),
		"merged":   with(func(p *Pull) { p.State, p.MergeSHA, p.Compared = PullMerged, shaOld, true }),
		"merging":  with(func(p *Pull) { p.State, p.MergeSHA = PullMerged, shaOld }),
		"differs": with(func(p *Pull) {
			p.State, p.MergeSHA, p.Reports = PullMerged, shaOld, nil
			p.Differs = []string{"prod-eu: the plan is not the reviewed one; it rolls 3 pools", "prod-us: it is changed too, which the review did not show"}
		}),
		"untold": with(func(p *Pull) {
			p.State, p.MergeSHA, p.Untold = PullMerged, shaOld, []string{"prod-eu: it was planned together with other commits"}
		}),
		"both": with(func(p *Pull) {
			p.State, p.MergeSHA, p.Reports = PullMerged, shaOld, nil
			p.Differs, p.Untold = []string{"prod-us: the merge does not change it"}, []string{"prod-eu: it was planned together with other commits"}
		}),
	}
}

var addresses = map[forge.Kind]string{
	forge.GitHub: "https://github.com/platform/fleet/pull/12", forge.GitLab: "https://gitlab.example.com/company/platform/fleet/-/merge_requests/12",
	forge.Gitea: "https://git.example.com/platform/fleet/pulls/12",
}

func TestPullComment(t *testing.T) {
	for dialect, address := range addresses {
		for name, p := range pulls() {
			p.WebURL = address
			o := CommentOptions{Instance: "production", Forge: dialect}
			if name == "long" {
				o.Limit = 20_000
			}
			got := PullComment(p, o)
			file := filepath.Join("testdata", "comment", name+"."+string(dialect)+".md")
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
				t.Errorf("%s for %s (-want +got):\n%s", name, dialect, diff)
			}
		}
	}
}

// TestPeopleSeeWholeARNs: in the comment and on the page alike, as these are approved.
func TestPeopleSeeWholeARNs(t *testing.T) {
	p := planned()
	role := "arn:aws:iam::123456789012:instance-profile/" + strings.Repeat("team-one/", 60)
	p.Reports[0].Plan.Steps[0].Changes = []step.Change{{Field: "awsLaunchTemplate.iamInstanceProfile", From: role + "reader", To: role + "admin"}}
	comment := PullComment(p, CommentOptions{Instance: "production", Forge: forge.GitHub})
	if !strings.Contains(comment, role+"reader") || !strings.Contains(comment, role+"admin") {
		t.Error("the comment cuts it")
	}
	b := testBoard()
	b.Report(t.Context(), p.Reports[0])
	page := get(t, b, "/targets/"+p.Reports[0].Target+"/plan").Body.String()
	if !strings.Contains(page, role+"reader") || !strings.Contains(page, role+"admin") {
		t.Errorf("the page cuts it:\n%s", page)
	}
}

func TestEqualPlansHaveEqualComments(t *testing.T) {
	a, b := planned(), planned()
	b.PlannedAt = noon
	for _, r := range b.Reports {
		r.StartedAt, r.Duration = noon, 5
	}
	o := CommentOptions{Instance: "production", Forge: forge.GitHub}
	if diff := cmp.Diff(PullComment(a, o), PullComment(b, o)); diff != "" {
		t.Error(diff)
	}
}

// TestCommentsAreShortened holds every length against the limit.
func TestCommentsAreShortened(t *testing.T) {
	p := pulls()["long"]
	p.WebURL = addresses[forge.GitHub]
	lead := "\n**Merging this changes 203 of 214 targets:** "
	seen := map[string]bool{}
	for limit := leastLimit; limit < 1_000_000; limit = limit*8/5 + 1 {
		got := PullComment(p, CommentOptions{Instance: "production", Forge: forge.GitHub, Limit: limit})
		if len(got) > limit {
			t.Fatalf("%d bytes for a limit of %d", len(got), limit)
		}
		if !strings.HasPrefix(got, PullMarker("production", "fleet")+DigestMarker(p.Digest)+lead) {
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
func texts(t *rapid.T) Pull {
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
	p := planned()
	p.State = rapid.SampledFrom([]PullState{PullPlanned, PullFailing, PullConflict, PullWaiting, PullMerged, PullClosed, PullUnaffected}).Draw(t, "state")
	p.Title, p.Author, p.Reason, p.Stale, p.Approved = draw("title"), draw("author"), draw("reason"), draw("stale"), draw("approved")
	p.BaseRef, p.HeadSHA, p.MergeSHA, p.Digest, p.PageURL = draw("ref"), draw("head"), draw("merge"), draw("digest"), "https://w.example/"+draw("page")
	p.WebURL = rapid.SampledFrom([]string{addresses[forge.GitHub], "https://evil.example/)[x](y)/pull/1", "javascript:x"}).Draw(t, "web") + draw("web")
	p.Gone, p.Differs, p.Untold = []string{draw("gone")}, []string{draw("differs")}, []string{draw("untold")}
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
	got := PullComment(p, CommentOptions{Instance: "prod", Forge: dialect, Limit: rapid.SampledFrom([]int{0, 1000, 3000, 6000}).Draw(t, "limit")})
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

func TestRolloutBatches(t *testing.T) {
	at := func(n int32) *int32 { return &n }
	for _, tt := range []struct {
		desired       int32
		low, high     *int32
		size, batches int
	}{
		{10, nil, nil, 1, 10},
		{100, nil, nil, 10, 10},
		{6, nil, nil, 1, 6},
		{6, at(67), nil, 1, 6}, // 4.02 is rounded up
		{6, at(50), nil, 3, 2},
		{10, at(100), nil, 1, 10},
		{10, at(0), nil, 10, 1},
		{7, at(50), at(100), 3, 3},
		{10, at(100), at(120), 2, 5},
		{10, at(100), at(125), 0, 0}, // 2.5 instances
		{10, at(90), at(110), 0, 0},
		{0, nil, nil, 0, 0},
		{10, at(-1), nil, 0, 0},
		{10, at(90), at(300), 0, 0},
	} {
		if size, batches := RolloutBatches(tt.desired, tt.low, tt.high); size != tt.size || batches != tt.batches {
			t.Errorf("%+v: %d, %d", tt, size, batches)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n, low := rapid.Int32Range(1, 10_000).Draw(t, "desired"), rapid.Int32Range(0, 100).Draw(t, "low")
		size, batches := RolloutBatches(n, &low, nil)
		if size < 1 || size > int(n) || size*batches < int(n) || size*(batches-1) >= int(n) {
			t.Fatalf("%d at once, %d batches", size, batches)
		}
		if left := int(n) - size; size > 1 && left*100 < int(n)*int(low) {
			t.Fatalf("%d of %d stay", left, n)
		}
	})
}

func TestLinks(t *testing.T) {
	for raw, want := range map[string]string{
		"https://git.example.com/o/r/pulls/7":     "https://git.example.com/o/r",
		"http://[::1]:3000/o/r/pulls/7":           "http://[::1]:3000/o/r",
		"https://git.example.com/o/(r)/pulls/7":   "https://git.example.com/o/%28r%29",
		"https://u:p@git.example.com/o/r/pulls/7": "",
		"https://a\"b/o/r/pulls/7":                "",
		"javascript:alert(1)//pulls/7":            "",
		"https://git.example.com/o/r/issues/7":    "",
		"":                                        "",
	} {
		if got := repositoryURL(raw, forge.Gitea); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
	c := comment{Pull: Pull{HeadSHA: shaNew}, o: CommentOptions{Forge: forge.GitLab}, repository: "https://git.example.com/o/r"}
	for file, want := range map[string]string{
		"a b/(x).yaml": "https://git.example.com/o/r/-/blob/" + shaNew + "/a%20b/%28x%29.yaml#L3",
		"../x":         "", "/etc/passwd": "", "a//b": "",
	} {
		if got := c.fileURL(diag.Position{File: file, Line: 3}); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}
