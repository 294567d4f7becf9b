package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/iampolicy"
)

// pastWeir marks requests that a test makes itself.
const pastWeir = "Past-Weir"

// watcher is an AWS that notes what IAM would be asked about each call, before the
// call changes anything.
type watcher struct {
	t   *testing.T
	emu *awsemu.Server

	mu    sync.Mutex
	calls []asked
	// elsewhere are the access keys of roles in other accounts, whose tags are not
	// looked at.
	elsewhere []string
}

var accessKeyID = regexp.MustCompile(`<AccessKeyId>(\w+)</AccessKeyId>`)

func (w *watcher) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // weir was stopped in the middle
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	by := r.Header.Get("Authorization")
	if r.Header.Get(pastWeir) == "" && !strings.Contains(r.UserAgent(), "Terraform") && strings.Count(by, "/") >= 4 && !w.isElsewhere(by) {
		c := newCall(w.t, w.emu, r, body)
		questions := append([]asked{c.asked()}, c.behalf()...)
		w.mu.Lock()
		w.calls = append(w.calls, questions...)
		w.mu.Unlock()
	}
	if !bytes.Contains(body, []byte("Action=AssumeRole&")) || bytes.Contains(body, []byte("iam%3A%3A000000000000%3Arole")) {
		w.emu.ServeHTTP(rw, r)
		return
	}
	answer := httptest.NewRecorder()
	w.emu.ServeHTTP(answer, r)
	if key := accessKeyID.FindStringSubmatch(answer.Body.String()); key != nil {
		w.mu.Lock()
		w.elsewhere = append(w.elsewhere, key[1])
		w.mu.Unlock()
	}
	maps.Copy(rw.Header(), answer.Header())
	rw.WriteHeader(answer.Code)
	_, _ = answer.Body.WriteTo(rw) // weir was stopped in the middle
}

func (w *watcher) isElsewhere(authorization string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.elsewhere, func(key string) bool { return strings.Contains(authorization, "Credential="+key+"/") })
}

// take returns what was asked since the last time.
func (w *watcher) take() []asked {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.calls
	w.calls = nil
	return out
}

// fits holds the calls of a script against the policies of the instance that a
// resource belongs to, or is to belong to. Only scripts that adopt may take.
func fits(t *testing.T, script string, calls []asked) {
	t.Helper()
	said := map[string]bool{}
	for _, a := range calls {
		owner, next := a.context["aws:ResourceTag/weir.dev/owner"], a.context["aws:RequestTag/weir.dev/owner"]
		scope := iampolicy.Scope{
			Partition: "aws", Account: "000000000000", Regions: []string{a.context["aws:RequestedRegion"]}, Instance: cmp.Or(next, owner),
			Parameters: []string{"*"}, Alarms: true, Drains: true, Adopt: strings.Contains(script, "adopt"),
		}
		if next != "" && owner != next && scope.Adopt {
			scope.From = owner
		}
		if strings.HasPrefix(a.resource, "arn:aws:iam:") {
			scope.Pass(a.resource)
		}
		if iampolicy.Needless()[a.action] != "" || said[a.action+a.resource] {
			continue
		}
		if a.action == "sts:AssumeRole" { // by the daemon itself
			if scope.AssumeRoles = []string{a.resource}; !allows(t, iampolicy.Make(iampolicy.Daemon, scope), a) {
				t.Errorf("%s: IAM would refuse %s on %s", script, a.action, a.resource)
			}
			continue
		}
		if !allows(t, iampolicy.Make(iampolicy.Apply, scope), a) || !a.behalf && allows(t, iampolicy.Make(iampolicy.Plan, scope), a) == a.write {
			said[a.action+a.resource] = true
			t.Errorf("%s: IAM would refuse %s on %s with %v, or allow it for a plan", script, a.action, a.resource, a.context)
		}
	}
}

// call is one request to AWS, taken apart.
type call struct {
	t                     *testing.T
	emu                   *awsemu.Server
	r                     *http.Request
	region, service, does string
	form                  url.Values
	members               map[string]any
	nodegroup, cluster    string
}

func newCall(t *testing.T, emu *awsemu.Server, r *http.Request, body []byte) call {
	t.Helper()
	scope := strings.Split(r.Header.Get("Authorization"), "/")
	c := call{t: t, emu: emu, r: r, region: scope[2], service: scope[3]}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		t.Error(err)
	}
	c.form, c.does = form, form.Get("Action")
	_ = json.Unmarshal(body, &c.members) // a form is no JSON
	if _, operation, ok := strings.Cut(r.Header.Get("X-Amz-Target"), "."); ok {
		c.does = operation
	}
	if c.service == "eks" {
		c.readEKS()
	}
	return c
}

// readEKS finds operation and nodegroup in the path of a request.
func (c *call) readEKS() {
	parts := strings.Split(strings.Trim(c.r.URL.Path, "/"), "/")
	if len(parts) > 1 {
		c.cluster = parts[1]
	}
	verb := map[string]string{http.MethodGet: "Describe", http.MethodPost: "Update", http.MethodDelete: "Delete"}[c.r.Method]
	switch {
	case parts[0] == "tags":
		id, err := url.PathUnescape(strings.TrimPrefix(c.r.URL.EscapedPath(), "/tags/"))
		of := strings.Split(id, "/")
		if err != nil || len(of) < 3 {
			c.t.Errorf("no nodegroup in %s", c.r.URL)
			return
		}
		c.cluster, c.nodegroup = of[1], of[2]
		c.does = map[string]string{http.MethodPost: "TagResource", http.MethodDelete: "UntagResource"}[c.r.Method]
	case len(parts) == 1:
		c.does = "ListClusters"
	case len(parts) == 2:
		c.does = verb + "Cluster"
	case parts[2] == "updates":
		c.nodegroup = c.r.URL.Query().Get("nodegroupName")
		c.does = map[bool]string{true: "DescribeUpdate", false: "ListUpdates"}[len(parts) > 3]
	case len(parts) == 3:
		c.does = map[string]string{http.MethodGet: "ListNodegroups", http.MethodPost: "CreateNodegroup"}[c.r.Method]
	default:
		c.nodegroup = parts[3]
		what := ""
		if len(parts) > 4 {
			what = strings.TrimPrefix(parts[4], "update")
			what = strings.ToUpper(what[1:2]) + what[2:]
		}
		c.does = verb + "Nodegroup" + what
	}
}

func (c *call) arn(service, name string) string {
	return "arn:aws:" + service + ":" + c.region + ":000000000000:" + name
}

func (c *call) iamARN(role string) string {
	if strings.HasPrefix(role, "arn:") {
		return role
	}
	return "arn:aws:iam::000000000000:role/" + role
}

// reads reports whether a call only looks.
func (c *call) reads() bool {
	return slices.ContainsFunc([]string{"Describe", "List", "Get", "Assume"}, func(p string) bool { return strings.HasPrefix(c.does, p) })
}

// asked is what IAM is asked about the call itself.
func (c *call) asked() asked {
	a := asked{action: c.service + ":" + c.does, resource: "*", write: !c.reads(), context: map[string]string{"aws:RequestedRegion": c.region}}
	existing := func(tags map[string]string) {
		for k, v := range tags {
			a.context["aws:ResourceTag/"+k] = v
		}
	}
	for k, v := range c.requested() {
		a.context["aws:RequestTag/"+k] = v
	}
	switch {
	case c.service == "ec2" && c.does == "RunInstances":
		if a.resource = c.arn("ec2", "instance/*"); c.form.Get("DryRun") != "true" {
			c.t.Errorf("weir launches a machine: %v", c.form)
		}
	case c.service == "ec2" && a.write:
		a.resource = c.arn("ec2", "launch-template/*")
		for _, key := range []string{"LaunchTemplateId", "ResourceId.1"} {
			if id := c.form.Get(key); id != "" {
				a.resource = c.arn("ec2", "launch-template/"+id)
				existing(c.templateTags("LaunchTemplateId.1", id))
			}
		}
		if name := c.form.Get("LaunchTemplateName"); name != "" && c.does != "CreateLaunchTemplate" {
			existing(c.templateTags("LaunchTemplateName.1", name))
		}
	case c.service == "autoscaling" && a.write:
		name := c.form.Get("AutoScalingGroupName")
		if name == "" {
			name = c.form.Get("Tags.member.1.ResourceId")
		}
		a.resource = c.arn("autoscaling", "autoScalingGroup:0:autoScalingGroupName/"+name)
		if c.does != "CreateAutoScalingGroup" {
			existing(c.groupTags(name))
		}
	case c.service == "eks" && c.nodegroup != "":
		a.resource = c.arn("eks", path.Join("nodegroup", c.cluster, c.nodegroup, "0"))
		existing(c.nodegroupTags())
	case c.service == "eks" && c.cluster != "":
		a.resource = c.arn("eks", "cluster/"+c.cluster)
	case c.service == "ssm":
		for _, key := range []string{"Name", "ResourceId"} {
			if name, ok := c.members[key].(string); ok {
				a.resource = c.arn("ssm", "parameter"+name)
			}
		}
		if names, ok := c.members["Names"].([]any); ok {
			a.resource = c.parameter(names[0].(string))
		}
	case c.service == "servicequotas":
		code, _ := c.members["QuotaCode"].(string)
		a.resource = c.arn("servicequotas", "ec2/"+code)
	case c.service == "kms":
		a.resource = c.arn("kms", "key/0") // whatever it was named by
	case c.does == "GetInstanceProfile":
		a.resource = "arn:aws:iam::000000000000:instance-profile/" + c.form.Get("InstanceProfileName")
	case c.service == "iam":
		a.resource = c.iamARN(c.form.Get("RoleName"))
	case c.service == "sts":
		a.resource = c.form.Get("RoleArn")
	}
	return a
}

// parameter is one of AWS's own or one of the account.
func (c *call) parameter(name string) string {
	if strings.HasPrefix(name, "/aws/service/") {
		return "arn:aws:ssm:" + c.region + "::parameter" + name
	}
	return c.arn("ssm", "parameter/"+strings.TrimPrefix(name, "/"))
}

// requested are the tags in the request, of what the call makes or tags.
func (c *call) requested() map[string]string {
	out := map[string]string{}
	for _, prefix := range []string{"TagSpecification.1.Tag.", "Tag.", "Tags.member."} {
		for i := 1; c.form.Get(prefix+strconv.Itoa(i)+".Key") != ""; i++ {
			if c.does != "DeleteTags" {
				out[c.form.Get(prefix+strconv.Itoa(i)+".Key")] = c.form.Get(prefix + strconv.Itoa(i) + ".Value")
			}
		}
	}
	tags, _ := c.members["tags"].(map[string]any)
	for k, v := range tags {
		out[k], _ = v.(string)
	}
	return out
}

// look asks a service of the emulator about something, past the watch.
func (c *call) look(service, method, address string, form url.Values) string {
	req := httptest.NewRequest(method, address, strings.NewReader(form.Encode()))
	req.Header.Set("Authorization", strings.Replace(c.r.Header.Get("Authorization"), "/"+c.service+"/", "/"+service+"/", 1))
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	c.emu.ServeHTTP(w, req)
	return w.Body.String()
}

func (c *call) templateTags(key, value string) map[string]string {
	return xmlTags(c.look("ec2", http.MethodPost, "/", url.Values{"Action": {"DescribeLaunchTemplates"}, "Version": {"2016-11-15"}, key: {value}}), "key", "value")
}

func (c *call) groupTags(name string) map[string]string {
	return xmlTags(c.look("autoscaling", http.MethodPost, "/", url.Values{"Action": {"DescribeAutoScalingGroups"}, "Version": {"2011-01-01"}, "AutoScalingGroupNames.member.1": {name}}), "Key", "Value")
}

func (c *call) nodegroupTags() map[string]string {
	var answer struct {
		Nodegroup struct {
			Tags map[string]string `json:"tags"`
		} `json:"nodegroup"`
	}
	_ = json.Unmarshal([]byte(c.look("eks", http.MethodGet, "/clusters/"+c.cluster+"/node-groups/"+c.nodegroup, nil)), &answer) // there may be none
	return answer.Nodegroup.Tags
}

// between cuts the text of an XML element out.
func between(s, name string) (found, after string, ok bool) {
	_, rest, begins := strings.Cut(s, "<"+name+">")
	found, after, ends := strings.Cut(rest, "</"+name+">")
	return found, after, begins && ends
}

// xmlTags reads the tags of the one resource in an answer.
func xmlTags(text, key, value string) map[string]string {
	out := map[string]string{}
	for {
		k, after, ok := between(text, key)
		if !ok {
			return out
		}
		if v, rest, ok := between(after, value); ok {
			out[k], after = v, rest
		}
		text = after
	}
}
