package page

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/status/browsertest"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/statustest"
)

const fleetURL = "https://git.example.com/platform/fleet.git"

// spread puts instances of two template versions into three zones.
func spread(old, next string, oldCount, nextCount int) statustest.PoolOption {
	return func(p *plan.PoolStatus) {
		for i := range oldCount + nextCount {
			c := plan.Instance{ID: fmt.Sprintf("i-0a%02dc3d4e5f6%05d", i, i*7919%100000), ImageID: "ami-0c1d2e3f405162738", TemplateVersion: old, Zone: p.Target[:2] + "-central-1" + string("abc"[i%3]), Type: "c7g.large", State: "InService", Health: "Healthy"}
			switch {
			case i >= oldCount:
				c.TemplateVersion = next
			case next != "":
				c.Why = "runs template version " + old + ", but the rollout uses " + next
			}
			if next != "" && i == oldCount+nextCount-1 {
				c.State = "Pending"
			}
			p.Instances = append(p.Instances, c)
			p.ProviderIDList = append(p.ProviderIDList, "aws:///"+c.Zone+"/"+c.ID)
		}
	}
}

func between(least, most int32) statustest.PoolOption {
	return func(p *plan.PoolStatus) { p.MinReplicas, p.MaxReplicas = least, most }
}

// showcase is a fleet as one may have it, for pictures: some rest, one rolls, one was
// changed by hand, and one has a fault in its files.
func showcase() *current.State {
	b := current.New(current.Options{Instance: "production", Now: func() time.Time { return statustest.Noon }})
	ctx := context.Background()
	var targets []current.Target
	for _, t := range []struct{ name, account, region string }{
		{"eu-production", "111122223333", "eu-central-1"}, {"us-production", "111122223333", "us-east-1"}, {"eu-staging", "444455556666", "eu-central-1"}, {"eu-edge", "777788889999", "eu-west-1"},
	} {
		targets = append(targets, current.Target{Name: t.name, Source: "fleet", Path: "overlays/" + t.name, Account: t.account, Region: t.region})
	}
	b.Configure([]current.Source{{Name: "fleet", URL: fleetURL, Ref: "branch main", Forge: "gitea"}}, targets)
	b.Sources.Update(current.Source{Name: "fleet", URL: fleetURL, Ref: "branch main", Revision: statustest.ShaNew, Subject: "web: c7g instances", FetchedAt: statustest.Noon.Add(-9 * time.Second)})
	pass := func(i int, ago time.Duration, pools ...plan.PoolStatus) *plan.Report {
		r := statustest.Report(targets[i].Name, pools...)
		r.Account, r.Region, r.Subject, r.StartedAt = targets[i].Account, targets[i].Region, "web: c7g instances", statustest.Noon.Add(-ago)
		return r
	}
	of := func(i int, name string, opts ...statustest.PoolOption) plan.PoolStatus {
		p := statustest.Pool(targets[i].Name, name)
		p.ProviderIDList, p.Instances = nil, nil
		for _, o := range opts {
			o(&p)
		}
		return p
	}
	versions := func(p *plan.PoolStatus) {
		p.TemplateVersions = []plan.VersionNote{{Number: 5, Revision: statustest.ShaNew[:7], Subject: "web: c7g instances"}, {Number: 4, Revision: statustest.ShaOld[:7], Subject: "web: larger root volumes", Default: true}}
	}
	seventy, started := int32(70), statustest.Noon.Add(-4*time.Minute)
	halfway := func(percent, left int32) statustest.PoolOption {
		return func(p *plan.PoolStatus) {
			statustest.Rolling(percent, left)(p)
			p.Rollout.MinHealthy, p.Rollout.StartedAt = &seventy, started
			p.Conditions = []plan.Condition{
				{Type: "Ready", Status: "False", Severity: "Info", Reason: "InProgress"}, {Type: "ASGReady", Status: "True"}, {Type: "LaunchTemplateReady", Status: "True"},
				{Type: "InstanceRefreshStarted", Status: "True", Reason: "InProgress"},
			}
		}
	}
	quiet := []plan.PoolStatus{of(0, "batch-spot", statustest.Sized(20, 20), between(0, 40)), of(0, "gpu", statustest.Managed, statustest.Sized(2, 2), between(1, 4)), of(0, "system", statustest.Managed, statustest.Sized(3, 3), between(3, 6))}

	web := of(0, "web", statustest.Sized(12, 12), between(6, 18), versions, spread("4", "", 12, 0))
	b.Targets.Report(ctx, pass(0, 3*time.Hour, append(quiet, web)...))
	version := statustest.StepFor(step.Update, step.LaunchTemplate, "default/web", "eu-production-web")
	version.Reason, version.Do = "the instance type changed", step.CreateLaunchTemplateVersion{}
	version.Changes = []step.Change{
		{Field: "awsLaunchTemplate.instanceType", From: "m6i.large", To: "c7g.large", Origin: &diag.Position{File: "overlays/eu-production/web.yaml", Line: 9, Column: 21}},
		{Field: "awsLaunchTemplate.ami.id", From: "ami-0c1d2e3f4a5b6c7d8", To: "ami-0f9e8d7c6b5a43210"},
	}
	refresh := statustest.StepFor(step.Rollout, step.AutoScalingGroup, "default/web", "eu-production-web")
	refresh.Reason, refresh.Disruptive, refresh.Instances = "12 instances run version 4", true, 12
	refresh.Do = step.StartRefresh{Preferences: intent.Refresh{MinHealthyPercentage: &seventy}}
	started0 := statustest.With(pass(0, 4*time.Minute, append(quiet, web)...), step.Done, version, refresh)
	started0.Outcomes[0].Result.Template.Version, started0.Outcomes[1].Result.RefreshID = "5", "08b91cf7-8fa6-48af-b6a6-d227f40f1b9b"
	b.Targets.Report(ctx, started0)
	b.Targets.Report(ctx, pass(0, 2*time.Minute, append(quiet, of(0, "web", statustest.Sized(12, 12), between(6, 18), versions, spread("4", "5", 8, 4), halfway(33, 8)))...))
	b.Targets.Report(ctx, pass(0, 11*time.Second, append(quiet, of(0, "web", statustest.Sized(12, 12), between(6, 18), versions, spread("4", "5", 4, 8), halfway(58, 5)))...))
	b.Targets.SetDue("eu-production", statustest.Noon.Add(5*time.Second))

	b.Targets.Report(ctx, pass(1, 5*time.Hour, of(1, "web", statustest.Sized(8, 8), between(4, 16)), of(1, "batch-spot", statustest.Sized(6, 6), between(0, 20))))
	drift := statustest.StepFor(step.Update, step.AutoScalingGroup, "default/batch-spot", "us-production-batch-spot")
	drift.Reason, drift.Drift = "maxSize 40 → 20", &step.Drift{}
	drift.Changes = []step.Change{{Field: "maxSize", From: 40, To: 20, Origin: &diag.Position{File: "base/batch.yaml", Line: 14, Column: 12}}}
	b.Targets.Report(ctx, statustest.With(pass(1, 40*time.Minute, of(1, "web", statustest.Sized(8, 8), between(4, 16)), of(1, "batch-spot", statustest.Sized(6, 6), between(0, 40))), step.Done, drift))
	b.Targets.Report(ctx, pass(1, 20*time.Second, of(1, "web", statustest.Sized(8, 8), between(4, 16)), of(1, "batch-spot", statustest.Sized(6, 6), between(0, 20))))
	b.Targets.SetDue("us-production", statustest.Noon.Add(40*time.Second))

	b.Targets.Report(ctx, pass(2, 26*time.Hour, of(2, "web", statustest.Sized(2, 2), between(1, 4))))
	broken := pass(2, 9*time.Second)
	broken.Plan, broken.Diagnostics = nil, diag.List{statustest.UnknownField()}
	broken.Diagnostics[0].File, broken.Diagnostics[0].Related = "overlays/eu-staging/web.yaml", nil
	b.Targets.Report(ctx, broken)
	b.Targets.Report(ctx, pass(3, 14*time.Second, of(3, "gateway", statustest.Sized(3, 3), between(3, 3)), of(3, "cache", statustest.Sized(5, 5), between(3, 9))))
	b.Targets.SetDue("eu-edge", statustest.Noon.Add(46*time.Second))

	review := pass(0, time.Minute, quiet...)
	volume := statustest.StepFor(step.Update, step.LaunchTemplate, "default/batch-spot", "eu-production-batch-spot")
	volume.Reason = "the root volume changed"
	volume.Changes = []step.Change{{Field: "awsLaunchTemplate.rootVolume.size", From: 64, To: 128, Origin: &diag.Position{File: "base/batch.yaml", Line: 31, Column: 17}}}
	rolls := statustest.StepFor(step.Rollout, step.AutoScalingGroup, "default/batch-spot", "eu-production-batch-spot")
	rolls.Reason, rolls.Disruptive, rolls.Instances, rolls.Do = "20 instances run version 7", true, 20, refresh.Do
	review.Plan.Steps, review.Plan.Summary = []step.Step{volume, rolls}, plan.Summary{Rollout: 1, Unchanged: 3}
	grow := pass(1, time.Minute, of(1, "web", statustest.Sized(8, 8), between(4, 16)))
	more := statustest.StepFor(step.Update, step.AutoScalingGroup, "default/web", "us-production-web")
	more.Reason = "maxSize 16 → 24"
	more.Changes = []step.Change{{Field: "maxSize", From: 16, To: 24, Origin: &diag.Position{File: "overlays/us-production/web.yaml", Line: 14, Column: 12}}}
	grow.Plan.Steps, grow.Plan.Summary = []step.Step{more}, plan.Summary{Update: 1, Unchanged: 1}
	digest := plan.CombinedDigest([]*plan.Plan{review.Plan, grow.Plan})
	b.Pulls.Update(report.Pull{
		Source: "fleet", Number: 42, Title: "batch: larger root volumes", Author: "platform-bot", WebURL: "https://git.example.com/platform/fleet/pulls/42", HeadSHA: statustest.ShaOld,
		BaseRef: "main", BaseSHA: statustest.ShaNew, State: report.PullPlanned, Reports: []*plan.Report{review, grow}, Unaffected: 2, Digest: digest, AsReviewed: true, PlannedAt: statustest.Noon.Add(-time.Minute),
		Forecast: &report.Forecast{Timeline: statustest.Foresee(statustest.Roll{Target: "eu-production", Pool: "default/batch-spot", Size: 20, Batch: 6, From: 1})},
	})
	b.Pulls.Update(report.Pull{Source: "fleet", Number: 41, Title: "edge: a second zone", Author: "rufus", State: report.PullConflict, BaseRef: "main", Reason: "update the branch: overlays/eu-edge/gateway.yaml was changed on both sides"})
	b.Daemon.ShowConfiguration("instance: production\ninterval: 1m\nsources:\n  - name: fleet\n    url: " + fleetURL + "\n    auth:\n      tokenFile: /etc/weir/token\n")
	return b
}

// pictures are those that the documentation shows.
var pictures = map[string]struct {
	path   string
	scheme string
	height int
}{
	"fleet":        {"/", "light", 1240},
	"target":       {"/targets/eu-production", "dark", 1240},
	"pull-request": {"/pulls/fleet/42", "light", 1240},
	"rollout":      {"/rollouts/fleet/platform/nodes", "light", 1240},
}

// TestDocumentationPictures makes the pictures of the documentation anew with -screenshots, and
// else looks whether they are there and small enough for a page that many read.
func TestDocumentationPictures(t *testing.T) {
	const most = 150 << 10
	dir := filepath.Join("..", "..", "deploy", "docs", "images")
	if *screenshots != "" {
		b := browsertest.Start(t)
		url, rolled := serve(t, showcase()), rolloutPages(t)
		for name, p := range pictures {
			address := url + p.path
			if name == "rollout" {
				address = rolled["rollout-running"]
			}
			small := fewColours(t, b.Open(t, address, 1200, p.scheme).Picture(p.height))
			if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), small, 0o644); err != nil { //nolint:gosec // a picture for everybody
				t.Fatal(err)
			}
		}
		dir = *screenshots
	}
	for name := range pictures {
		raw, err := os.ReadFile(filepath.Join(dir, name+".png"))
		if err != nil {
			t.Fatal(err)
		}
		if c, err := png.DecodeConfig(bytes.NewReader(raw)); err != nil || c.Width != 1200 || len(raw) > most {
			t.Errorf("%s is %d wide and has %d KiB: %v", name, c.Width, len(raw)>>10, err)
		}
	}
}

// fewColours makes a picture smaller: it has the 256 colours that matter most, and
// of the others the nearest of these. On a page those are edges of letters.
func fewColours(t *testing.T, raw []byte) []byte {
	t.Helper()
	from, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	count := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(from.At(x, y)).(color.RGBA) }
	size := from.Bounds()
	for y := range size.Dy() {
		for x := range size.Dx() {
			count[at(x, y)]++
		}
	}
	// Any colour but the greys counts for more: there are few of it, and they are seen.
	weight := func(c color.RGBA) int { return count[c] * (1 + int(max(c.R, c.G, c.B)-min(c.R, c.G, c.B))/8) }
	often := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int { return weight(b) - weight(a) })
	colours := color.Palette{}
	for _, c := range often[:min(len(often), 256)] {
		colours = append(colours, c)
	}
	nearest := map[color.RGBA]uint8{}
	for _, c := range often {
		nearest[c] = uint8(colours.Index(c)) //nolint:gosec // a palette has 256 at most
	}
	out := image.NewPaletted(size, colours)
	for y := range size.Dy() {
		for x := range size.Dx() {
			out.SetColorIndex(x, y, nearest[at(x, y)])
		}
	}
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, out); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
