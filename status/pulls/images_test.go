package pulls

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
)

// lookedUp is a pool whose image is the newest of a name, followed or not.
func lookedUp(name string, follow bool, changes ...string) string {
	text := strings.ReplaceAll(pool(name), "ami: {eksLookupType: AmazonLinux2023}", `imageLookupFormat: "ours-*", imageLookupOrg: "000000000000"`)
	if follow {
		text = strings.ReplaceAll(text, "kind: AWSMachinePool\nmetadata: {name: "+name+"}", "kind: AWSMachinePool\nmetadata: {name: "+name+", annotations: {weir.dev/ami-policy: follow}}")
	}
	return strings.NewReplacer(changes...).Replace(text)
}

// newImage makes an image, the newest when its day is the latest.
func (b *bench) newImage(day int) (id string) {
	b.t.Helper()
	id = fmt.Sprintf("ami-%017d", day)
	seed := fmt.Sprintf(`{"regions": {"eu-west-1": {"images": [{"id": %q, "name": "ours-%d", "architecture": "x86_64", "created": "2026-01-%02dT00:00:00Z"}]}}}`, id, day, day)
	if err := b.aws.Seed(strings.NewReader(seed)); err != nil {
		b.t.Fatal(err)
	}
	return id
}

// again ends the process and starts the next one, whose caches are empty.
func (b *bench) again() {
	b.t.Helper()
	b.openAccounts()
	if err := b.db.Close(); err != nil {
		b.t.Fatal(err)
	}
	b.openState()
}

// moves are those of images in plans, by target.
func moves(reports []*plan.Report) map[string]string {
	out := map[string]string{}
	for _, r := range reports {
		if r.Plan == nil {
			continue
		}
		r.Plan.ImageChanges(func(c *step.Change) {
			if _, made := c.To.(string); made {
				out[r.Target] = fmt.Sprintf("%v → %v", c.From, c.To)
			}
		})
	}
	return out
}

// drifts are the steps of plans that put right what changed outside Git.
func drifts(reports []*plan.Report) string {
	var out []string
	for _, r := range reports {
		if r.Plan == nil {
			continue
		}
		for _, s := range r.Plan.Steps {
			if s.Drift != nil {
				out = append(out, r.Target+": "+s.Reason)
			}
		}
	}
	return strings.Join(out, ", ")
}

// found is what was found out about a target.
func found(reports []*plan.Report, target string) string {
	var out []string
	for _, r := range reports {
		for _, d := range r.Diagnostics {
			if r.Target == target {
				out = append(out, d.Code+": "+d.Summary)
			}
		}
	}
	return strings.Join(out, "\n")
}

// withImages is a bench whose targets run the image of the first day: the pool of one
// keeps what it has, that of two follows what is newest. A newer one was published since.
func withImages(t *testing.T, extra string) (b *bench, first, second string) {
	t.Helper()
	b = newBench(t, "", extra)
	first = b.newImage(1)
	b.main(map[string]string{"o/one/pool.yaml": lookedUp("one", false), "o/two/pool.yaml": lookedUp("two", true)})
	b.converge()
	return b, first, b.newImage(2)
}

const biggerMachine, largeMachine = "m5.2xlarge", "m5.large"

func TestAMergeAppliesTheImagesThatItsPlanShowed(t *testing.T) {
	for name, merge := range map[string]func(b *bench, head string){
		"merge commit": func(b *bench, head string) { b.merge(1, head) },
		"squashed":     func(b *bench, head string) { b.squash(1, head) },
		"the forge tells late": func(b *bench, head string) {
			b.squash(1, head)
			b.forge.pulls[1].State = forge.Open
		},
		"another pull request first": func(b *bench, head string) {
			other := b.propose(2, map[string]string{"README.md": "x"})
			b.squash(2, other)
			b.squash(1, head)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, first, second := withImages(t, "")
			b.again()
			b.compose()
			head := b.propose(1, map[string]string{"o/one/pool.yaml": lookedUp("one", false, largeMachine, biggerMachine), "o/two/pool.yaml": lookedUp("two", true, largeMachine, biggerMachine)})
			b.round()
			shown := b.display.last()
			if shown.State != report.PullPlanned || shown.Digest == "" {
				t.Fatalf("shown: %+v", shown)
			}
			// The image of one moves because of the change; that of two would anyway.
			if got := moves(shown.Reports); got["one"] != first+" → "+second || got["two"] != "" {
				t.Errorf("shown: %v", got)
			}
			third := b.newImage(3)
			b.again()
			merge(b, head)
			reports := b.pass()
			if got := moves(reports); got["one"] != first+" → "+second || got["two"] != "" {
				t.Errorf("the merge: %v", got)
			}
			if got := found(reports, "one"); !strings.Contains(got, "newer-image") || !strings.Contains(got, third) || !strings.Contains(got, "pull request 1") {
				t.Errorf("nobody is told of the newer image: %s", got)
			}
			b.forge.pulls[1].State = forge.Merged
			b.forge.version++
			b.round()
			b.round()
			if p := b.display.last(); p.State != report.PullMerged || len(p.Differs) > 0 {
				t.Errorf("told of the merge: %v %s", p.Differs, p.State)
			}
			// Afterwards the pools that follow images take those published since.
			later := map[string]string{}
			b.free = true
			for range 80 {
				reports := b.pass()
				for target, move := range moves(reports) {
					later[target] += move + " "
				}
				if got := drifts(reports); got != "" {
					t.Errorf("an image that is followed counts as drift: %s", got)
				}
				b.awsClock.Advance(time.Minute)
			}
			if later["one"] != "" || later["two"] != first+" → "+third+" " {
				t.Errorf("afterwards: %v", later)
			}
			b.round()
			if len(b.w.images.byPull) > 0 {
				t.Errorf("kept for ever: %v", b.w.images.byPull)
			}
		})
	}
}

// proposed has both pools' machines changed by pull request 1, as planned.
func (b *bench) proposed() (head string) {
	b.t.Helper()
	head = b.propose(1, map[string]string{"o/one/pool.yaml": lookedUp("one", false, largeMachine, biggerMachine), "o/two/pool.yaml": lookedUp("two", true, largeMachine, biggerMachine)})
	b.round()
	if p := b.display.last(); p.State != report.PullPlanned {
		b.t.Fatalf("shown: %+v", p)
	}
	return head
}

// If a shown image cannot be had any more, weir says so and looks it up anew.
func TestAReviewedImageThatCannotBeTaken(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*bench)
		why  string
	}{
		"gone": {func(b *bench) { b.w.images.byPull[1].Images[0].ID = "ami-0123456789abcdef0" }, "no longer matches the lookup: image named ours-*"},
		"of somebody else": {func(b *bench) {
			seed := `{"regions": {"eu-west-1": {"images": [{"id": "ami-0123456789abcdef0", "owner": "999999999999", "name": "ours-9", "architecture": "x86_64", "created": "2026-01-09T00:00:00Z"}]}}}`
			if err := b.aws.Seed(strings.NewReader(seed)); err != nil {
				b.t.Fatal(err)
			}
			b.w.images.byPull[1].Images[0].ID = "ami-0123456789abcdef0"
		}, "no longer matches the lookup: image named ours-*"},
		"long ago": {func(b *bench) { b.clock = b.clock.Add(imagesFor + time.Minute) }, "the plan was made on 2026-03-01, which is too long ago"},
	} {
		t.Run(name, func(t *testing.T) {
			b, first, _ := withImages(t, "")
			b.again()
			b.compose()
			head := b.proposed()
			third := b.newImage(3)
			b.again()
			kept := imagesFirst(b)
			if kept == "" {
				t.Fatal("nothing is kept over a restart")
			}
			tc.edit(b)
			b.squash(1, head)
			reports := b.pass()
			if got := moves(reports)["one"]; got != first+" → "+third {
				t.Errorf("taken: %s", got)
			}
			if got := found(reports, "one"); !strings.Contains(got, "reviewed-image-gone") || !strings.Contains(got, tc.why) {
				t.Errorf("said: %s", got)
			}
		})
	}
}

// imagesFirst is the image that the record of pull request 1 begins with: that of one.
func imagesFirst(b *bench) string {
	r := b.w.images.byPull[1]
	for i := range r.Images {
		if r.Images[i].ID != "" {
			r.Images[0], r.Images[i] = r.Images[i], r.Images[0]
			for _, of := range r.Targets {
				for source, j := range of {
					switch j {
					case 0:
						of[source] = i
					case i:
						of[source] = 0
					}
				}
			}
			return r.Images[0].ID
		}
	}
	return ""
}

// A pull request that is open, or was closed, holds nothing back: pools that follow
// images go on to do so, and what it showed goes with it.
func TestImagesOfAPullRequestThatIsNotMerged(t *testing.T) {
	b, first, second := withImages(t, "")
	b.again()
	b.compose()
	b.proposed()
	b.again()
	followed := ""
	b.free = true
	for range 30 {
		followed += moves(b.pass())["two"]
		b.awsClock.Advance(time.Minute)
	}
	if followed != first+" → "+second {
		t.Errorf("followed meanwhile: %q", followed)
	}
	b.round()
	if got := moves(b.display.last().Reports)["two"]; got != "" {
		t.Errorf("shown of two: %s", got)
	}
	if len(b.w.images.byPull) != 1 {
		t.Errorf("kept: %v", b.w.images.byPull)
	}
	b.forge.pulls[1].State = forge.Closed
	b.forge.version++
	b.round()
	b.again()
	if len(b.w.images.byPull) > 0 {
		t.Errorf("kept of a closed pull request: %v", b.w.images.byPull)
	}
}

// Of pull requests that were merged, as much is kept as may be asked for.
func TestImagesOfMergedPullRequestsAreBounded(t *testing.T) {
	b := newBench(t, "", "")
	b.main(map[string]string{"o/one/pool.yaml": pool("one")})
	b.compose()
	for i := range imagesMerged + 10 {
		r := imageRecord{Number: int64(i + 1), At: b.now().Add(time.Duration(i) * time.Second), MergedAt: b.now(), Targets: map[string]map[string]int{"one": {"s": 0}}, Images: []model.ReviewedImage{{ID: "ami-1"}}}
		b.w.images.byPull[r.Number] = r
	}
	b.round()
	if n := len(b.w.images.byPull); n != imagesMerged || b.w.images.byPull[1].Number != 0 {
		t.Errorf("kept: %d", n)
	}
	b.clock = b.clock.Add(imagesFor + time.Minute)
	b.round()
	if n := len(b.w.images.byPull); n > 0 {
		t.Errorf("kept for ever: %d", n)
	}
}

// A cached answer from before the review makes weir neither take another image nor go back to an older one afterwards.
func TestAReviewIsNewerThanWhatIsCached(t *testing.T) {
	b, first, second := withImages(t, "")
	b.restart() // plans are made with caches of their own
	b.clock = b.awsClock.Now().Add(-31 * time.Second)
	head := b.proposed()
	b.squash(1, head)
	if got := moves(b.pass()); got["one"] != first+" → "+second {
		t.Errorf("the merge: %v", got)
	}
	last := map[string]string{}
	b.free = true
	for range 60 {
		for target, move := range moves(b.pass()) {
			last[target] += move + " "
		}
		b.awsClock.Advance(time.Minute)
	}
	if last["one"] != "" || last["two"] != first+" → "+second+" " {
		t.Errorf("afterwards: %v", last)
	}
}

// A launch template that pools share goes the same way: what its pools have is kept where
// images are followed, and what a review showed is taken where they are not.
func TestImagesOfASharedTemplate(t *testing.T) {
	shared := func(target, annotations, instanceType string) string {
		text := pool(target)
		at := strings.Index(text, "  awsLaunchTemplate:")
		return text[:at] + "  launchConfigRef: {kind: AWSLaunchConfigTemplate, name: nodes-" + target + "}\n---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSLaunchConfigTemplate\nmetadata: {name: nodes-" + target + annotations +
			"}\nspec: {template: {spec: {instanceType: " + instanceType + ", imageLookupFormat: \"ours-*\", imageLookupOrg: \"000000000000\"}}}\n"
	}
	files := func(instanceType string) map[string]string {
		return map[string]string{"o/one/pool.yaml": shared("one", "", instanceType), "o/two/pool.yaml": shared("two", ", annotations: {weir.dev/ami-policy: follow}", instanceType)}
	}
	b := newBench(t, "", "")
	first := b.newImage(1)
	b.main(files(largeMachine))
	b.converge()
	second := b.newImage(2)
	b.again()
	b.compose()
	head := b.propose(1, files(biggerMachine))
	b.round()
	if p := b.display.last(); p.State != report.PullPlanned || moves(p.Reports)["one"] != first+" → "+second || moves(p.Reports)["two"] != "" {
		t.Fatalf("shown: %s %s %v", p.State, p.Reason, moves(p.Reports))
	}
	third := b.newImage(3)
	b.again()
	b.squash(1, head)
	if got := moves(b.pass()); got["one"] != first+" → "+second || got["two"] != "" {
		t.Errorf("the merge: %v", got)
	}
	later := map[string]string{}
	b.free = true
	for range 60 {
		for target, move := range moves(b.pass()) {
			later[target] += move + " "
		}
		b.awsClock.Advance(time.Minute)
	}
	if later["one"] != "" || later["two"] != first+" → "+third+" " {
		t.Errorf("afterwards: %v", later)
	}
}
