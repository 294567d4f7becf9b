package simulate

import (
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/commands"
)

// checks is what is looked at while the world goes on.
type checks struct {
	writes int
	// asked is when the daemon last had an answer from Git, by which it knows the branch.
	asked time.Time
	// rolls are the last rollouts of groups, byHand what people did to them since.
	rolls   map[string]roll
	deleted map[string]map[string]bool // groups deleted by weir, by the commit that does not want them
	byHand  map[string]time.Time       // when people last changed a group
	foreign string                     // what was there that is somebody else's
	written []string                   // calls of the time since mark
}

type roll struct {
	template, revision string
	byHand             bool
}

// foreignName is a group that another weir owns, and its template.
const (
	foreignName  = "foreign"
	foreignImage = "ami-0123456789abcdef0"
)

func (c *checks) begin(w *World) {
	c.byHand, c.rolls, c.deleted = map[string]time.Time{}, map[string]roll{}, map[string]map[string]bool{}
	for _, f := range []url.Values{
		{"Action": {"CreateLaunchTemplate"}, "LaunchTemplateName": {foreignName}, "LaunchTemplateData.InstanceType": {"t3.large"}, "LaunchTemplateData.ImageId": {foreignImage}},
		{"Action": {"CreateAutoScalingGroup"}, "AutoScalingGroupName": {foreignName}, "MinSize": {"0"}, "MaxSize": {"2"}, "LaunchTemplate.LaunchTemplateName": {foreignName}, "AvailabilityZones.member.1": {"eu-west-1a"},
			"Tags.member.1.Key": {"weir.dev/owner"}, "Tags.member.1.Value": {"another"}, "Tags.member.1.ResourceId": {foreignName}, "Tags.member.1.ResourceType": {"auto-scaling-group"}, "Tags.member.1.PropagateAtLaunch": {"false"}},
	} {
		if w.person(f) == "" {
			w.t.Fatalf("%s of the foreign group is refused", f.Get("Action"))
		}
	}
	c.foreign = fmt.Sprintf("%+v", w.groups()[foreignName])
}

// alike gives the foreign group the tags of one of weir's, but for the owner: another weir
// follows the same repository.
func (w *World) alike() {
	groups := w.groups()
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		if name == foreignName || len(groups[name].Tags) < 4 {
			continue
		}
		for _, t := range groups[name].Tags {
			if strings.HasPrefix(t.Key, "weir.dev/") && t.Key != "weir.dev/owner" {
				w.person(url.Values{"Action": {"CreateOrUpdateTags"}, "Tags.member.1.Key": {t.Key}, "Tags.member.1.Value": {strings.ReplaceAll(t.Value, name, foreignName)},
					"Tags.member.1.ResourceId": {foreignName}, "Tags.member.1.ResourceType": {"auto-scaling-group"}, "Tags.member.1.PropagateAtLaunch": {"false"}})
			}
		}
		w.checks.foreign = fmt.Sprintf("%+v", w.groups()[foreignName])
		return
	}
}

func (c *checks) touched(group string) {
	c.byHand[group] = time.Now()
	if r, ok := c.rolls[group]; ok {
		r.byHand = true
		c.rolls[group] = r
	}
}

// fetched notes that a daemon was told what the branch is.
func (w *World) fetched(r *http.Request, code int) {
	if code == http.StatusOK && strings.Contains(r.URL.RawQuery, "git-upload-pack") {
		w.checks.asked = time.Now()
	}
}

// answered looks at a call to AWS that has had its effect.
func (w *World) answered(c *call, body []byte, resp *http.Response) {
	if strings.Contains(string(body), canary) {
		w.fail("a secret is sent: %s", body)
	}
	if !c.write || resp.StatusCode != http.StatusOK {
		return
	}
	k := &w.checks
	k.writes++
	if w.calm {
		k.written = append(k.written, c.name)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return
	}
	group := form.Get("AutoScalingGroupName")
	if group == "" {
		group = form.Get("Tags.member.1.ResourceId")
	}
	if group == foreignName || form.Get("LaunchTemplateName") == foreignName {
		w.fail("%s writes to what another weir owns", c.name)
	}
	if c.name != "CreateAutoScalingGroup" && c.name != "CreateOrUpdateTags" && group != "" && !w.known(group) {
		w.fail("%s writes to %s, which Git has never named", c.name, group)
	}
	switch c.name {
	case "DeleteAutoScalingGroup":
		w.deletes(group)
	case "StartInstanceRefresh":
		w.rolls(group)
	}
}

func (w *World) known(group string) bool {
	return slices.ContainsFunc(w.repo.heads, func(h head) bool { _, ok := h.pools[group]; return ok })
}

// deletes: what is deleted is not in the commit that the daemon was last told of, or in
// one since.
func (w *World) deletes(group string) {
	// What was asked for is known some time later, and a pass that deletes was planned
	// before.
	heads := w.repo.since(w.checks.asked.Add(-time.Minute))
	if !slices.ContainsFunc(heads, func(h head) bool { _, wanted := h.pools[group]; return !wanted && !h.broken }) {
		w.fail("%s is deleted, and Git wants it", group)
	}
	// It is deleted for the first commit that does not want it, of those that may be known.
	for _, h := range heads {
		if _, wanted := h.pools[group]; wanted || h.broken {
			continue
		}
		if w.checks.deleted[h.revision] == nil {
			w.checks.deleted[h.revision] = map[string]bool{}
		}
		gone := w.checks.deleted[h.revision]
		gone[group] = true
		if most := w.most(); len(gone) > most {
			w.fail("%d groups are deleted at commit %s: %v; at most %d may be", len(gone), h.revision[:7], slices.Sorted(maps.Keys(gone)), most)
		}
		break
	}
	delete(w.checks.rolls, group)
}

// most is how many groups a commit may delete: half of what there was, which is all that
// ever was wanted at a time or less.
func (w *World) most() (n int) {
	for _, h := range w.repo.heads {
		n = max(n, len(h.pools))
	}
	return max(1, n/2)
}

// rolls: one commit has one rollout for a group at most, unless people did something.
func (w *World) rolls(group string) {
	k := &w.checks
	now := roll{template: w.groups()[group].Version, revision: w.repo.head().revision}
	if last, ok := k.rolls[group]; ok && last.template == now.template && last.revision == now.revision && !last.byHand {
		w.fail("%s is rolled to version %s once more", group, now.template)
	}
	k.rolls[group] = now
}

// group is what is looked at of one.
type group struct {
	Name      string `xml:"AutoScalingGroupName"`
	Max       int    `xml:"MaxSize"`
	Cooldown  int    `xml:"DefaultCooldown"`
	Version   string `xml:"LaunchTemplate>Version"`
	Template  string `xml:"LaunchTemplate>LaunchTemplateId"`
	Tags      []tag  `xml:"Tags>member"`
	Instances []struct {
		Type    string `xml:"InstanceType"`
		Version string `xml:"LaunchTemplate>Version"`
	} `xml:"Instances>member"`
}

type tag struct{ Key, Value string }

func (w *World) groups() map[string]group {
	var out struct {
		Groups []group `xml:"DescribeAutoScalingGroupsResult>AutoScalingGroups>member"`
	}
	if err := xml.Unmarshal([]byte(w.person(url.Values{"Action": {"DescribeAutoScalingGroups"}, "MaxRecords": {"100"}})), &out); err != nil {
		w.t.Fatal(err)
	}
	byName := map[string]group{}
	for _, g := range out.Groups {
		byName[g.Name] = g
	}
	return byName
}

// promised: where a commit is said to be applied, AWS is what it says, but for what
// people did since the daemon has looked.
func (c *checks) promised(w *World, h head) {
	got := w.groups()
	for _, name := range slices.Sorted(maps.Keys(h.pools)) {
		p, g := h.pools[name], got[name]
		if name == foreignName {
			w.fail("commit %s is said to be applied, and another weir owns %s", h.revision[:7], name)
			continue
		}
		if time.Since(c.byHand[name]) < time.Hour {
			continue
		}
		if g.Max != p.max || !slices.Contains(g.Tags, tag{"owner", p.owner}) {
			w.fail("commit %s is said to be applied; group %s has at most %d and %v, and the commit says %d and %s", h.revision[:7], name, g.Max, g.Tags, p.max, p.owner)
		}
		for _, i := range g.Instances {
			if i.Type != p.kind {
				w.fail("commit %s is said to be applied; group %s has an instance of %s, and the commit says %s", h.revision[:7], name, i.Type, p.kind)
			}
		}
	}
}

// settle: after all that, weir and AWS come to rest, and to what Git says.
func (w *World) settle() {
	w.calm = true
	// What waits for somebody, as deletions above the limit do, is wanted again.
	next := w.repo.head().clone()
	next.broken = false
	for name := range w.groups() {
		if _, ok := next.pools[name]; !ok && name != foreignName || len(next.pools) == 0 {
			next.pools[name] = pool{max: 3, kind: types[0], owner: "team-0"}
		}
	}
	delete(next.pools, foreignName)
	w.trace("%s", w.commit(next, "mended", false))
	w.run(time.Now().Add(time.Hour)) // who was killed has started again
	w.command(commands.ResumePath, gates.Request{Target: "prod", All: true})
	w.run(time.Now().Add(8 * time.Hour))
	w.checks.written = nil
	before := w.step
	w.run(time.Now().Add(2 * time.Hour))
	first := w.step - before
	w.run(time.Now().Add(2 * time.Hour))
	if second := w.step - before - first; second > 2*first+20 {
		w.fail("two hours at rest took %d steps, and the next two %d", first, second)
	}
	if first > 2000 {
		w.fail("two hours at rest took %d steps", first)
	}
	if n := w.checks.written; len(n) > 0 {
		w.fail("at rest weir writes: %v", n)
	}
	w.same()
}

// same: AWS holds what Git says and nothing else, and the daemon says so.
func (w *World) same() {
	want, got := w.repo.head().pools, w.groups()
	if now := fmt.Sprintf("%+v", got[foreignName]); now != w.checks.foreign {
		w.fail("what another weir owns was %s and is %s", w.checks.foreign, now)
	}
	delete(got, foreignName)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		g, ok := got[name]
		p := want[name]
		switch {
		case !ok:
			w.fail("there is no group %s", name)
		case g.Max != p.max || g.Cooldown != 300:
			w.fail("group %s has at most %d, cooldown %d; Git says %d", name, g.Max, g.Cooldown, p.max)
		case !slices.Contains(g.Tags, tag{"owner", p.owner}):
			w.fail("group %s has the tags %v; Git says %s", name, g.Tags, p.owner)
		case len(g.Instances) == 0:
			w.fail("group %s has no instance", name)
		}
		for _, i := range g.Instances {
			if i.Type != p.kind || i.Version != g.Version {
				w.fail("group %s has an instance of %s and version %s; Git says %s, the group %s", name, i.Type, i.Version, p.kind, g.Version)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			w.fail("group %s is there, and Git does not want it", name)
		}
	}
	if w.daemon == nil {
		w.fail("no daemon runs")
		return
	}
	if all := w.forge.statuses[w.repo.head().revision]; len(all) == 0 || all[len(all)-1].State != "success" {
		w.fail("the last status of commit %s is not success: %+v", w.repo.head().revision, all)
	}
	if pools := w.daemon.app.Pools(); len(pools) < len(want) {
		w.fail("the daemon shows %d pools, and Git says %d", len(pools), len(want))
	}
	for _, p := range w.daemon.app.Pools() {
		if _, ok := want[p.Name]; ok && p.Phase != plan.PhaseRunning {
			w.fail("the daemon says of %s: %s %s %s %+v", p.Name, p.Phase, p.FailureReason, p.FailureMessage, p.Conditions)
		}
	}
}
