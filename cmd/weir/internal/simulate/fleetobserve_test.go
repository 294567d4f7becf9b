package simulate

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/waves"
)

// ask is a question of somebody at the console, which no bucket counts.
func (f *fleet) ask(service, version string, form url.Values, out any) {
	form.Set("Version", version)
	for {
		r, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, "https://"+service+".eu-west-1.amazonaws.com/", nil)
		if err != nil {
			f.t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIAPERSON/20000101/eu-west-1/"+service+"/aws4_request, SignedHeaders=host, Signature=00")
		resp := f.serveAWS(r, []byte(form.Encode()))
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			f.t.Fatal(err)
		}
		if resp.StatusCode == http.StatusOK {
			if err := xml.Unmarshal(text, out); err != nil {
				f.t.Fatal(err)
			}
			return
		}
		if !strings.Contains(string(text), "Throttl") && !strings.Contains(string(text), "RequestLimitExceeded") {
			f.t.Fatalf("%s: %s", form.Get("Action"), text)
		}
		time.Sleep(time.Second)
	}
}

// fleetGroup is what is looked at of a group.
type fleetGroup struct {
	Name      string `xml:"AutoScalingGroupName"`
	Instances []struct {
		ID       string `xml:"InstanceId"`
		Zone     string `xml:"AvailabilityZone"`
		State    string `xml:"LifecycleState"`
		Template string `xml:"LaunchTemplate>LaunchTemplateId"`
		Version  string `xml:"LaunchTemplate>Version"`
	} `xml:"Instances>member"`
}

// stands is how the fleet stands: how many machines are in service, by image.
type stands struct{ service map[string]int }

// look looks at AWS, and has clusters hear of machines: those of a good image become Ready
// half a minute later, those of the bad one never do: of each two one does not join.
func (f *fleet) look() stands {
	var out struct {
		Groups []fleetGroup `xml:"DescribeAutoScalingGroupsResult>AutoScalingGroups>member"`
	}
	f.ask("autoscaling", "2011-01-01", url.Values{"Action": {"DescribeAutoScalingGroups"}, "MaxRecords": {"100"}}, &out)
	s := stands{service: map[string]int{}}
	there := make(map[string]bool, len(f.nodes))
	for i := range out.Groups {
		g := &out.Groups[i]
		for _, in := range g.Instances {
			there[in.ID] = true
			m := f.nodes[in.ID]
			if m == nil {
				m = &machine{id: in.ID, group: g.Name, zone: in.Zone, image: f.imageOf(in.Template, in.Version), seen: time.Now()}
				f.nodes[in.ID] = m
				if m.image == imageBad && f.first == "" {
					f.first = in.ID
				}
			}
			if in.State == "InService" {
				s.service[m.image]++
				f.join(m)
			}
		}
	}
	for id, m := range f.nodes {
		if !there[id] && m.state != "gone" {
			if m.state != "" {
				f.cluster(m).RemoveNode(m.name())
			}
			m.state = "gone"
		}
	}
	return s
}

func (m *machine) name() string { return "ip-" + strings.TrimPrefix(m.id, "i-") }

// join has a machine's node be as it is by now.
func (f *fleet) join(m *machine) {
	want := ""
	switch age := time.Since(m.seen); {
	case m.image == imageBad && m.id[len(m.id)-1]%2 == 0:
	case m.image == imageBad, age < 30*time.Second:
		want = "False"
	default:
		want = "True"
	}
	if want != m.state {
		m.state = want
		f.cluster(m).AddNodeSince(m.name(), "aws:///"+m.zone+"/"+m.id, want, time.Now())
	}
}

// cluster is that of a machine: the name of a group begins with it.
func (f *fleet) cluster(m *machine) interface {
	AddNodeSince(name, providerID, ready string, since time.Time)
	RemoveNode(name string)
} {
	name, _, _ := strings.Cut(strings.TrimPrefix(m.group, "default_"), "-")
	n, err := strconv.Atoi(strings.TrimPrefix(name, "c"))
	if err != nil {
		f.t.Fatalf("the group %s is of no cluster", m.group)
	}
	return f.clusters[n]
}

// launched are the machines of an image that were ever seen, by group.
func (f *fleet) launched(image string) (groups map[string]int, machines int) {
	groups = map[string]int{}
	for _, m := range f.nodes {
		if m.image == image {
			groups[m.group]++
			machines++
		}
	}
	return groups, machines
}

// imageOf is the image of a version of a template, which never changes.
func (f *fleet) imageOf(template, version string) string {
	key := template + " " + version
	if f.images[key] == "" {
		var out struct {
			Image string `xml:"launchTemplateVersionSet>item>launchTemplateData>imageId"`
		}
		f.ask("ec2", "2016-11-15", url.Values{"Action": {"DescribeLaunchTemplateVersions"}, "LaunchTemplateId": {template}, "LaunchTemplateVersion.1": {version}}, &out)
		f.images[key] = out.Image
	}
	return f.images[key]
}

// launchedAt is when a machine was launched.
func (f *fleet) launchedAt(id string) time.Time {
	var out struct {
		At time.Time `xml:"reservationSet>item>instancesSet>item>launchTime"`
	}
	f.ask("ec2", "2016-11-15", url.Values{"Action": {"DescribeInstances"}, "InstanceId.1": {id}}, &out)
	return out.At
}

// refreshing are the groups whose machines AWS replaces now, and nobody has asked it to stop.
func (f *fleet) refreshing(groups map[string]int) (active []string) {
	for name := range groups {
		var out struct {
			Refreshes []struct {
				ID, Status string
			} `xml:"DescribeInstanceRefreshesResult>InstanceRefreshes>member"`
		}
		f.ask("autoscaling", "2011-01-01", url.Values{"Action": {"DescribeInstanceRefreshes"}, "AutoScalingGroupName": {name}}, &out)
		for _, r := range out.Refreshes {
			if r.Status == "Pending" || r.Status == "InProgress" || r.Status == "Baking" {
				active = append(active, name)
			}
		}
	}
	return active
}

// rollout is how a daemon says that the FleetRollout stands; nil where none answers.
func (f *fleet) rollout() *waves.Rollout {
	var list waves.List
	if !f.get(commands.RolloutsPath, &list) || len(list.Rollouts) == 0 {
		return nil
	}
	return &list.Rollouts[0]
}

// get reads something that a daemon serves.
func (f *fleet) get(path string, out any) bool {
	for _, m := range f.members {
		d := m.process
		if d == nil {
			continue
		}
		r, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, "http://127.0.0.1"+path, nil)
		if err != nil {
			f.t.Fatal(err)
		}
		c := d.client()
		c.Timeout = 20 * time.Second
		resp, err := c.Do(r)
		if err != nil {
			continue
		}
		err = json.NewDecoder(resp.Body).Decode(out)
		_ = resp.Body.Close()
		if err == nil {
			return true
		}
	}
	return false
}

// until looks each few seconds until something is so.
func (f *fleet) until(what string, most time.Duration, is func(s stands) string) {
	f.t.Helper()
	end, why := time.Now().Add(most), ""
	for time.Now().Before(end) {
		if why = is(f.look()); why == "" {
			return
		}
		wait := f.every
		for _, m := range f.members {
			if !m.again.IsZero() {
				wait = min(wait, time.Until(m.again))
			}
		}
		if len(f.strikes) > 0 {
			wait = min(wait, time.Until(f.strikes[0]))
		}
		select {
		case d := <-f.killing:
			f.kill(d)
		case <-time.After(wait):
		}
		if len(f.strikes) > 0 && !time.Now().Before(f.strikes[0]) {
			f.strikeNow()
		}
		for _, m := range f.members {
			if !m.again.IsZero() && !time.Now().Before(m.again) {
				f.start(m)
			}
		}
	}
	r, _ := json.Marshal(f.rollout())
	f.t.Fatalf("%s: not within %v: %s; %.3000s", what, most, why, r)
}

// whole is empty once all machines are in service with an image, and the daemon says that the
// commit is applied.
func (f *fleet) whole(image, revision string) func(s stands) string {
	all := f.size.clusters * f.size.pools * f.size.machines
	return func(s stands) string {
		if s.service[image] != all || len(s.service) != 1 {
			return fmt.Sprintf("in service: %v", s.service)
		}
		if got := f.forge.last(revision, "fleet/apply"); got.State != "success" {
			return fmt.Sprintf("status %s: %s", got.State, got.Description)
		}
		return ""
	}
}

// last is the newest status of a commit in a context.
func (h *fleetForge) last(revision, name string) (out postedStatus) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.statuses[revision] {
		if s.Context == name {
			out = s
		}
	}
	return out
}

// asked are calls that AWS took since a moment.
func (f *fleet) asked(operation string, since time.Time) (out []awsemu.Call) {
	for _, c := range f.aws.Calls() {
		if c.Operation == operation && c.ErrorCode == "" && c.Time.After(since) {
			out = append(out, c)
		}
	}
	return out
}
