package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// checks is what is looked at while the world goes on.
type checks struct {
	writes int
	// rolls are the last rollouts of groups, byHand what people did to them since.
	rolls   map[string]roll
	deleted map[place]*deletion  // by the commit that does not want what was deleted
	byHand  map[string]time.Time // when people last changed a group
	foreign string               // what was there that is somebody else's
	written []string             // calls of the time since mark
}

type roll struct {
	template string // the version to which it is rolled
	at       moment // what weir had heard of Git
	byHand   bool
}

// foreignName is a group that another weir owns, and its template.
const (
	foreignName  = "foreign"
	foreignImage = "ami-0123456789abcdef0"
)

func (c *checks) begin(w *World) {
	c.byHand, c.rolls, c.deleted = map[string]time.Time{}, map[string]roll{}, map[place]*deletion{}
	for _, f := range []url.Values{
		{"Action": {"CreateLaunchTemplate"}, "LaunchTemplateName": {foreignName}, "LaunchTemplateData.InstanceType": {"t3.large"}, "LaunchTemplateData.ImageId": {foreignImage},
			"TagSpecification.1.ResourceType": {"launch-template"}, "TagSpecification.1.Tag.1.Key": {ownerTag}, "TagSpecification.1.Tag.1.Value": {"another"}},
		{"Action": {"CreateAutoScalingGroup"}, "AutoScalingGroupName": {foreignName}, "MinSize": {"0"}, "MaxSize": {"2"}, "LaunchTemplate.LaunchTemplateName": {foreignName}, "AvailabilityZones.member.1": {"eu-west-1a"},
			"Tags.member.1.Key": {ownerTag}, "Tags.member.1.Value": {"another"}, "Tags.member.1.ResourceId": {foreignName}, "Tags.member.1.ResourceType": {"auto-scaling-group"}, "Tags.member.1.PropagateAtLaunch": {"false"}},
	} {
		if w.person(f) == "" {
			w.t.Fatalf("%s of the foreign group is refused", f.Get("Action"))
		}
	}
	c.foreign = fmt.Sprintf("%+v", w.groups()[foreignName])
}

const ownerTag = "weir.dev/owner"

// alike gives the foreign group and its template the tags of weir's, but for the owner:
// another weir follows the same repository.
func (w *World) alike() {
	groups, templates := w.groups(), w.templates()
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		from, ok := templates[name]
		if name == foreignName || !ok || len(groups[name].Tags) < 4 {
			continue
		}
		for _, t := range groups[name].Tags {
			if strings.HasPrefix(t.Key, "weir.dev/") && t.Key != ownerTag {
				w.person(url.Values{"Action": {"CreateOrUpdateTags"}, "Tags.member.1.Key": {t.Key}, "Tags.member.1.Value": {strings.ReplaceAll(t.Value, name, foreignName)},
					"Tags.member.1.ResourceId": {foreignName}, "Tags.member.1.ResourceType": {"auto-scaling-group"}, "Tags.member.1.PropagateAtLaunch": {"false"}})
			}
		}
		for _, t := range from.Tags {
			if strings.HasPrefix(t.Key, "weir.dev/") && t.Key != ownerTag {
				w.person(url.Values{"Action": {"CreateTags"}, "ResourceId.1": {templates[foreignName].ID}, "Tag.1.Key": {t.Key}, "Tag.1.Value": {strings.ReplaceAll(t.Value, name, foreignName)}})
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

// writes looks at a call that is about to change AWS: what it names is the caller's, and
// what it says is something that the branch has said, and people have approved where they
// must.
func (w *World) writes(c *call, body []byte) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return
	}
	m := c.daemon.instance
	group := groupOf(form)
	if g, ok := w.groups()[group]; ok && c.name != "CreateAutoScalingGroup" && value(g.Tags, ownerTag) != m.name {
		w.fail("%s of %s writes to the group %s, which has the tags %v", c.name, m.name, group, g.Tags)
	}
	for name, t := range w.templates() {
		if named := form.Get("LaunchTemplateId") == t.ID || form.Get("LaunchTemplateName") == name || form.Get("ResourceId.1") == t.ID; named && c.name != "CreateLaunchTemplate" && value(t.Tags, ownerTag) != m.name {
			w.fail("%s of %s writes to the template %s, which has the tags %v", c.name, m.name, name, t.Tags)
		}
		if form.Get("LaunchTemplateId") == t.ID {
			form.Set("LaunchTemplateName", name)
		}
	}
	t := w.targetOfGroup(cmp.Or(group, form.Get("LaunchTemplateName")))
	for _, name := range []string{"", group, form.Get("LaunchTemplateName")} {
		if t == nil {
			break
		}
		if s, ok := t.suspended[name]; ok && time.Since(s.since) > heeds && w.aheadOf().Before(s.until) {
			w.fail("%s of %s writes to %q, which is suspended until %v", c.name, m.name, cmp.Or(group, form.Get("LaunchTemplateName")), s.until)
		}
	}
	if c.name == "DeleteLaunchTemplateVersions" {
		w.drops(form)
	}
	if kind := form.Get("LaunchTemplateData.InstanceType"); kind != "" {
		w.said(c, form.Get("LaunchTemplateName"), "machines of "+kind, func(p pool) bool { return p.kind == kind })
	}
	if size := form.Get("MaxSize"); size != "" {
		w.said(c, group, "a maximum of "+size, func(p pool) bool { return strconv.Itoa(p.max) == size })
	}
}

// drops: no version is deleted that a group or a machine has.
func (w *World) drops(form url.Values) {
	for _, g := range w.groups() {
		for name, values := range form {
			if g.Template != form.Get("LaunchTemplateId") || !strings.HasPrefix(name, "LaunchTemplateVersion.") {
				continue
			}
			for _, i := range g.Instances {
				if i.Version == values[0] || g.Version == values[0] {
					w.fail("version %s of %s is deleted, which it uses", values[0], g.Name)
				}
			}
		}
	}
}

// said: what is written of a pool was said of it by the branch, and approved.
func (w *World) said(c *call, group, what string, is func(pool) bool) {
	m := c.daemon.instance
	if !slices.ContainsFunc(w.repo.heads, func(h head) bool { p, ok := m.wants(h.tree)[group]; return ok && is(p) }) {
		w.fail("%s of %s gives %s %s, which the branch has never said", c.name, m.name, group, what)
	}
	if m.reviewed && !slices.ContainsFunc(m.allowed[group], is) {
		w.fail("%s of %s gives %s %s, which nobody has approved", c.name, m.name, group, what)
	}
}

func groupOf(form url.Values) string {
	if group := form.Get("AutoScalingGroupName"); group != "" {
		return group
	}
	return form.Get("Tags.member.1.ResourceId")
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
		k.written = append(k.written, c.daemon.name+" "+c.name)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return
	}
	switch group := groupOf(form); c.name {
	case "DeleteAutoScalingGroup":
		w.deletes(c.daemon.instance, group)
	case "StartInstanceRefresh":
		w.rolls(c.daemon.instance, group, form.Get("DesiredConfiguration.LaunchTemplate.Version"))
	case "CreateLaunchTemplateVersion":
		w.makesVersion(c.region, form.Get("LaunchTemplateId"))
	}
}

// rolls: one commit has one rollout for a group at most, unless people did something, as
// bringing the branch back to it.
func (w *World) rolls(m *instance, group, version string) {
	k := &w.checks
	now := roll{template: version, at: w.came(m.told[len(m.told)-1].revision)}
	if last, ok := k.rolls[group]; ok && last.template == now.template && last.at == now.at && !last.byHand {
		w.fail("%s is rolled to version %s once more", group, now.template)
	}
	k.rolls[group] = now
}

// makesVersion: no two versions beside each other hold the same.
func (w *World) makesVersion(region, template string) {
	text := w.personIn(region, url.Values{"Action": {"DescribeLaunchTemplateVersions"}, "LaunchTemplateId": {template}, "MaxResults": {"200"}})
	var versions []string // the newest first
	for part := range strings.SplitSeq(text, "<launchTemplateData>") {
		if data, _, ok := strings.Cut(part, "</launchTemplateData>"); ok {
			versions = append(versions, data)
		}
	}
	if len(versions) > 1 && versions[0] == versions[1] {
		w.fail("the newest version of template %s holds what the one before holds", template)
	}
}

// promised: where a commit is said to be applied, AWS is what it says, but for what
// people did since the daemon has looked. Where there are several targets, the status of each
// says so of its own, and that of all is about those that the commit has touched.
func (w *World) promised(d *daemon, h head, target string) {
	if target == "" && len(d.targets) > 1 {
		return
	}
	got, want := w.groups(), d.wants(h.tree)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if _, of := h.pools[target+"/"+name]; target != "" && !of {
			continue
		}
		p, g := want[name], got[name]
		if owner := value(g.Tags, ownerTag); g.Name != "" && owner != d.name {
			w.fail("commit %s is said to be applied, and %s owns %s", h.revision[:7], owner, name)
			continue
		}
		if time.Since(w.checks.byHand[name]) < time.Hour {
			continue
		}
		if g.Max != p.max || value(g.Tags, "owner") != p.owner {
			w.fail("commit %s is said to be applied; group %s has at most %d and %v, and the commit says %d and %s", h.revision[:7], name, g.Max, g.Tags, p.max, p.owner)
		}
		for _, i := range g.Instances {
			if i.Type != p.kind {
				w.fail("commit %s is said to be applied; group %s has an instance of %s, and the commit says %s", h.revision[:7], name, i.Type, p.kind)
			}
		}
	}
}

// planned: where a commit is said to be planned, it can be.
func (w *World) planned(d *daemon, sha string, s postedStatus) {
	for _, h := range w.repo.heads {
		if h.revision == sha && h.broken {
			w.fail("%s says that commit %s is planned, and it does not render: %s", d.name, sha[:7], s.Description)
		}
	}
}

// commented: one comment of an instance shows what a pull request does.
func (w *World) commented(d *daemon, c *comment) {
	w.trace("%s: comment %d on pull request %d", d.name, c.id, c.number)
	if strings.Contains(c.body, canary) {
		w.fail("a comment shows a secret: %s", c.body)
	}
	if all := w.forge.told(d.instance, c.number); len(all) > 1 {
		w.fail("%s has %d comments on pull request %d", d.name, len(all), c.number)
	}
}

// same: AWS holds what Git says and nothing else, and the daemons say so.
func (w *World) same() {
	got := w.groups()
	if now := fmt.Sprintf("%+v", got[foreignName]); now != w.checks.foreign {
		w.fail("what another weir owns was %s and is %s", w.checks.foreign, now)
	}
	delete(got, foreignName)
	templates := w.templates()
	delete(templates, foreignName)
	for _, m := range w.instances {
		m.same(got)
		for name := range m.wants(w.repo.head().tree) {
			delete(got, name)
			delete(templates, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		w.fail("group %s is there, and Git does not want it", name)
	}
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		w.fail("template %s is there, and Git does not want it", name)
	}
}

func (m *instance) same(got map[string]group) {
	w, want := m.w, m.wants(m.w.repo.head().tree)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		g, ok := got[name]
		p := want[name]
		switch {
		case !ok:
			w.fail("there is no group %s", name)
		case g.Max != p.max || g.Cooldown != 300:
			w.fail("group %s has at most %d, cooldown %d; Git says %d", name, g.Max, g.Cooldown, p.max)
		case value(g.Tags, "owner") != p.owner:
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
	if s := w.forge.last(w.repo.head().revision, m.name+"/apply"); s.State != "success" {
		w.fail("the last status of commit %s for %s is not success: %+v", w.repo.head().revision, m.name, s)
	}
	for _, one := range m.members {
		one.shows(want)
	}
	m.reviews()
}

// shows: a member shows the pools as they are.
func (m *member) shows(want map[string]pool) {
	w := m.w
	if m.process == nil || m.process.app == nil {
		w.fail("%s does not run", m.name)
		return
	}
	pools := m.process.app.Pools()
	if len(pools) < len(want) {
		w.fail("%s shows %d pools, and Git says %d", m.name, len(pools), len(want))
	}
	for _, p := range pools {
		if _, ok := want[p.Name]; ok && p.Phase != "Running" {
			w.fail("%s says of %s: %s %s %s %+v", m.name, p.Name, p.Phase, p.FailureReason, p.FailureMessage, p.Conditions)
		}
	}
}

// reviews: every pull request has a comment that is about its head, or says what became of
// it, and a status that waits for nothing.
func (m *instance) reviews() {
	for _, p := range m.w.forge.pulls {
		told := m.w.forge.told(m, p.number)
		switch {
		case len(told) > 1:
			m.w.fail("%s has %d comments on pull request %d", m.name, len(told), p.number)
		case p.state != "open" || len(told) == 0 && !slices.ContainsFunc(p.changed(), func(key string) bool { _, ok := m.mine(key); return ok }):
		case len(told) == 0:
			m.w.fail("%s says nothing on pull request %d, which is open", m.name, p.number)
		case !strings.Contains(told[0].body, p.head()[:7]):
			m.w.fail("what %s says on pull request %d is not about %s: %s", m.name, p.number, p.head()[:7], told[0].body)
		}
		if s := m.w.forge.last(p.head(), m.name+"/plan"); s.State == "pending" || p.state == "open" && s.State == "" {
			m.w.fail("the status of pull request %d (%s) at its head %s is %q: %s", p.number, p.state, p.head()[:7], s.State, s.Description)
		}
	}
}

// last is the last status of a commit in a context.
func (f *forge) last(sha, context string) (out postedStatus) {
	for _, s := range f.statuses[sha] {
		if s.Context == context {
			out = s
		}
	}
	return out
}
