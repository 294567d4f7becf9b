package policytest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/iampolicy"
)

// Questions returns the IAM checks for a request to the emulator, according to the emulator's state before
// the request.
func Questions(t testing.TB, emu *awsemu.Server, r *http.Request, body []byte) []Asked {
	t.Helper()
	c := newCall(t, emu, r, body)
	return append([]Asked{c.asked()}, c.behalf()...)
}

// Enforce returns the emulator for a caller with a policy. A request that the policy does not allow is
// refused in AWS's format, and has no effect.
func Enforce(t testing.TB, emu *awsemu.Server, d iampolicy.Document, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the caller has gone
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		for _, a := range Questions(t, emu, r, body) {
			if iampolicy.Needless()[a.Action] == "" && !Allows(t, d, a) {
				deny(w, r, a)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// deny answers in the format of the called service.
func deny(w http.ResponseWriter, r *http.Request, a Asked) {
	service := strings.Split(r.Header.Get("Authorization"), "/")[3]
	text := "User: arn:aws:iam::000000000000:user/weir is not authorized to perform: " + a.Action + " on resource: " + a.Resource
	switch service {
	case "ec2":
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>"+text+"</Message></Error></Errors><RequestID>1</RequestID></Response>")
	case "autoscaling", "iam", "sts", "elasticloadbalancing", "cloudwatch":
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>"+text+"</Message></Error><RequestId>1</RequestId></ErrorResponse>")
	default:
		w.Header().Set("X-Amzn-ErrorType", "AccessDeniedException")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(map[string]string{"__type": "AccessDeniedException", "message": text})
	}
}

// call is a parsed request to AWS.
type call struct {
	t                     testing.TB
	emu                   *awsemu.Server
	r                     *http.Request
	region, service, does string
	form                  url.Values
	members               map[string]any
	nodegroup, cluster    string
}

func newCall(t testing.TB, emu *awsemu.Server, r *http.Request, body []byte) call {
	t.Helper()
	scope := strings.Split(r.Header.Get("Authorization"), "/")
	c := call{t: t, emu: emu, r: r, region: scope[2], service: scope[3]}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		t.Error(err)
	}
	c.form, c.does = form, form.Get("Action")
	_ = json.Unmarshal(body, &c.members) // a form is not JSON
	if _, operation, ok := strings.Cut(r.Header.Get("X-Amz-Target"), "."); ok {
		c.does = operation
	}
	if c.service == "eks" {
		c.readEKS()
	}
	return c
}

// readEKS finds the operation and the nodegroup in the path of a request.
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

// reads reports whether a call only reads.
func (c *call) reads() bool {
	return slices.ContainsFunc([]string{"Describe", "List", "Get", "Assume"}, func(p string) bool { return strings.HasPrefix(c.does, p) })
}

// asked returns the IAM check of the call itself.
func (c *call) asked() Asked {
	a := Asked{Action: c.service + ":" + c.does, Resource: "*", Write: !c.reads(), Context: map[string]string{"aws:RequestedRegion": c.region}}
	for k, v := range c.requested() {
		a.Context["aws:RequestTag/"+k] = v
	}
	switch {
	case c.service == "ec2":
		c.askEC2(&a)
	case c.service == "autoscaling" && a.Write:
		c.askAutoScaling(&a)
	case c.service == "eks" && c.nodegroup != "":
		a.Resource = c.arn("eks", path.Join("nodegroup", c.cluster, c.nodegroup, "0"))
		a.existing(c.nodegroupTags())
	case c.service == "eks" && c.cluster != "":
		a.Resource = c.arn("eks", "cluster/"+c.cluster)
	case c.service == "ssm":
		c.askSSM(&a)
	case c.service == "servicequotas":
		code, _ := c.members["QuotaCode"].(string)
		a.Resource = c.arn("servicequotas", "ec2/"+code)
	case c.service == "kms":
		a.Resource = c.arn("kms", "key/0") // by whatever name the request used
	case c.does == "GetInstanceProfile":
		a.Resource = "arn:aws:iam::000000000000:instance-profile/" + c.form.Get("InstanceProfileName")
	case c.service == "iam":
		a.Resource = c.iamARN(c.form.Get("RoleName"))
	case c.service == "sts":
		a.Resource = c.form.Get("RoleArn")
	}
	return a
}

// existing adds the resource's existing tags to the context.
func (a *Asked) existing(tags map[string]string) {
	for k, v := range tags {
		a.Context["aws:ResourceTag/"+k] = v
	}
}

func (c *call) askEC2(a *Asked) {
	if c.does == "RunInstances" {
		if a.Resource = c.arn("ec2", "instance/*"); c.form.Get("DryRun") != "true" {
			c.t.Errorf("weir launches a machine: %v", c.form)
		}
		return
	}
	if !a.Write {
		return
	}
	a.Resource = c.arn("ec2", "launch-template/*")
	for _, key := range []string{"LaunchTemplateId", "ResourceId.1"} {
		if id := c.form.Get(key); id != "" {
			a.Resource = c.arn("ec2", "launch-template/"+id)
			a.existing(c.templateTags("LaunchTemplateId.1", id))
		}
	}
	if name := c.form.Get("LaunchTemplateName"); name != "" && c.does != "CreateLaunchTemplate" {
		a.existing(c.templateTags("LaunchTemplateName.1", name))
	}
}

func (c *call) askAutoScaling(a *Asked) {
	name := c.form.Get("AutoScalingGroupName")
	if name == "" {
		name = c.form.Get("Tags.member.1.ResourceId")
	}
	a.Resource = c.arn("autoscaling", "autoScalingGroup:0:autoScalingGroupName/"+name)
	if c.does != "CreateAutoScalingGroup" {
		a.existing(c.groupTags(name))
	}
}

func (c *call) askSSM(a *Asked) {
	for _, key := range []string{"Name", "ResourceId"} {
		if name, ok := c.members[key].(string); ok {
			a.Resource = c.arn("ssm", "parameter"+name)
		}
	}
	if names, ok := c.members["Names"].([]any); ok {
		a.Resource = c.parameter(names[0].(string))
	}
}

// parameter returns the ARN of a parameter of AWS or of the account.
func (c *call) parameter(name string) string {
	if strings.HasPrefix(name, "/aws/service/") {
		return "arn:aws:ssm:" + c.region + "::parameter" + name
	}
	return c.arn("ssm", "parameter/"+strings.TrimPrefix(name, "/"))
}

// requested returns the tags in a request that creates or tags a resource.
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

// query sends a request to the emulator without the policy.
func (c *call) query(service, method, address string, form url.Values) string {
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
	return xmlTags(c.query("ec2", http.MethodPost, "/", url.Values{"Action": {"DescribeLaunchTemplates"}, "Version": {"2016-11-15"}, key: {value}}), "key", "value")
}

func (c *call) groupTags(name string) map[string]string {
	return xmlTags(c.query("autoscaling", http.MethodPost, "/", url.Values{"Action": {"DescribeAutoScalingGroups"}, "Version": {"2011-01-01"}, "AutoScalingGroupNames.member.1": {name}}), "Key", "Value")
}

func (c *call) nodegroupTags() map[string]string {
	var answer struct {
		Nodegroup struct {
			Tags map[string]string `json:"tags"`
		} `json:"nodegroup"`
	}
	_ = json.Unmarshal([]byte(c.query("eks", http.MethodGet, "/clusters/"+c.cluster+"/node-groups/"+c.nodegroup, nil)), &answer) // the nodegroup may not exist
	return answer.Nodegroup.Tags
}

// between returns the text inside an XML element.
func between(s, name string) (found, after string, ok bool) {
	_, rest, begins := strings.Cut(s, "<"+name+">")
	found, after, ends := strings.Cut(rest, "</"+name+">")
	return found, after, begins && ends
}

// xmlTags reads the tags of the only resource in an answer.
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
