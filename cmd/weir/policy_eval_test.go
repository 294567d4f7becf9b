package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/cmd/weir/internal/iampolicy"
	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// asked is one call as IAM sees it.
type asked struct {
	action, resource string
	// context holds the condition keys that the call has.
	context map[string]string
	write   bool
}

// allows decides as IAM does where policies only allow: one statement that names
// the action, the resource and conditions that all hold.
func allows(t *testing.T, d iampolicy.Document, a asked) bool {
	t.Helper()
	return slices.ContainsFunc(d.Statement, func(s iampolicy.Statement) bool {
		return slices.Contains(s.Action, a.action) && slices.ContainsFunc(s.Resource, func(p string) bool { return like(p, a.resource) }) && holds(t, s.Condition, a.context)
	})
}

func holds(t *testing.T, c iampolicy.Condition, context map[string]string) bool {
	t.Helper()
	for operator, keys := range c {
		for key, values := range keys {
			have, present := context[key]
			var ok bool
			switch operator {
			case "StringEquals":
				ok = present && slices.Contains(values, have)
			case "ArnLike":
				ok = present && slices.ContainsFunc(values, func(p string) bool { return like(p, have) })
			case "Null":
				ok = values[0] == strconv.FormatBool(!present)
			default:
				t.Fatalf("the evaluator knows no operator %s", operator)
			}
			if !ok {
				return false
			}
		}
	}
	return true
}

// like matches with * for any text; a text with a * stands for one of its kind,
// as a resource that does not exist yet.
func like(pattern, text string) bool {
	if pattern == text || pattern == "*" {
		return true
	}
	head, tail, star := strings.Cut(pattern, "*")
	if !star {
		return false
	}
	rest, ok := strings.CutPrefix(text, head)
	for ok && rest != "" {
		if like(tail, rest) {
			return true
		}
		rest = rest[1:]
	}
	return ok && like(tail, rest)
}

// watch is an AWS that notes what IAM would be asked about each call, before the
// call changes anything.
func watch(t *testing.T, emu *awsemu.Server, r *http.Request, body string) asked {
	t.Helper()
	scope := strings.Split(r.Header.Get("Authorization"), "/")
	region, service := scope[2], scope[3]
	arn := func(service, name string) string {
		return "arn:aws:" + service + ":" + region + ":000000000000:" + name
	}
	a := asked{resource: "*", context: map[string]string{"aws:RequestedRegion": region}}
	form, err := url.ParseQuery(body)
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	_ = json.Unmarshal([]byte(body), &members) // a form is no JSON
	requested := func(key, value string) { a.context["aws:RequestTag/"+key] = value }
	existing := func(tags map[string]string) {
		for k, v := range tags {
			a.context["aws:ResourceTag/"+k] = v
		}
	}
	formTags := func(prefix string) {
		for i := 1; form.Get(prefix+strconv.Itoa(i)+".Key") != ""; i++ {
			requested(form.Get(prefix+strconv.Itoa(i)+".Key"), form.Get(prefix+strconv.Itoa(i)+".Value"))
		}
	}
	switch service {
	case "ec2":
		a.action = "ec2:" + form.Get("Action")
		if strings.HasPrefix(form.Get("Action"), "Describe") {
			break
		}
		a.resource = arn("ec2", "launch-template/*")
		formTags("TagSpecification.1.Tag.")
		formTags("Tag.")
		for _, key := range []string{"LaunchTemplateId", "ResourceId.1"} {
			if id := form.Get(key); id != "" {
				a.resource = arn("ec2", "launch-template/"+id)
				existing(templateTags(t, emu, r, "LaunchTemplateId.1", id))
			}
		}
		if name := form.Get("LaunchTemplateName"); name != "" && form.Get("Action") != "CreateLaunchTemplate" {
			existing(templateTags(t, emu, r, "LaunchTemplateName.1", name))
		}
	case "autoscaling":
		a.action = "autoscaling:" + form.Get("Action")
		if strings.HasPrefix(form.Get("Action"), "Describe") {
			break
		}
		name := form.Get("AutoScalingGroupName") + form.Get("Tags.member.1.ResourceId")
		if form.Get("AutoScalingGroupName") != "" {
			name = form.Get("AutoScalingGroupName")
		}
		a.resource = arn("autoscaling", "autoScalingGroup:0:autoScalingGroupName/"+name)
		formTags("Tags.member.")
		if form.Get("Action") != "CreateAutoScalingGroup" {
			existing(groupTagsOf(t, emu, r, name))
		}
	case "eks":
		a.resource, a.context = eksAsked(t, emu, r, arn, a.context, existing)
		if tags, ok := members["tags"].(map[string]any); ok {
			for k, v := range tags {
				requested(k, v.(string))
			}
		}
	case "ssm":
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		a.action = "ssm:" + operation
		if names, ok := members["Names"].([]any); ok {
			a.resource = "arn:aws:ssm:" + region + "::parameter" + names[0].(string)
		}
	case "iam":
		a.action, a.resource = "iam:"+form.Get("Action"), "arn:aws:iam::000000000000:role/"+form.Get("RoleName")
	case "sts":
		a.action = "sts:" + form.Get("Action")
	default:
		t.Fatalf("nobody knows how IAM is asked about %s", service)
	}
	return a
}

// eksAsked finds the resource in the path of a request.
func eksAsked(t *testing.T, emu *awsemu.Server, r *http.Request, arn func(string, string) string, context map[string]string, existing func(map[string]string)) (string, map[string]string) {
	t.Helper()
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	nodegroup := func(cluster, name string) string {
		existing(nodegroupTags(t, emu, r, cluster, name))
		return arn("eks", path.Join("nodegroup", cluster, name, "0"))
	}
	switch {
	case parts[0] == "tags":
		id, err := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), "/tags/"))
		if err != nil {
			t.Fatal(err)
		}
		of := strings.Split(id, "/")
		return nodegroup(of[1], of[2]), context
	case len(parts) == 1:
		return "*", context
	case len(parts) > 3 && parts[2] == "node-groups":
		return nodegroup(parts[1], parts[3]), context
	case r.URL.Query().Get("nodegroupName") != "":
		return nodegroup(parts[1], r.URL.Query().Get("nodegroupName")), context
	}
	return arn("eks", "cluster/"+parts[1]), context
}

// look asks the emulator about something, past the watch.
func look(emu *awsemu.Server, like *http.Request, method, address, body string) string {
	req := httptest.NewRequest(method, address, strings.NewReader(body))
	req.Header.Set("Authorization", like.Header.Get("Authorization"))
	if body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	emu.ServeHTTP(w, req)
	return w.Body.String()
}

func templateTags(t *testing.T, emu *awsemu.Server, r *http.Request, key, value string) map[string]string {
	t.Helper()
	return xmlTags(look(emu, r, http.MethodPost, "/", url.Values{"Action": {"DescribeLaunchTemplates"}, "Version": {"2016-11-15"}, key: {value}}.Encode()), "key", "value")
}

func groupTagsOf(t *testing.T, emu *awsemu.Server, r *http.Request, name string) map[string]string {
	t.Helper()
	return xmlTags(look(emu, r, http.MethodPost, "/", url.Values{"Action": {"DescribeAutoScalingGroups"}, "Version": {"2011-01-01"}, "AutoScalingGroupNames.member.1": {name}}.Encode()), "Key", "Value")
}

func nodegroupTags(t *testing.T, emu *awsemu.Server, r *http.Request, cluster, name string) map[string]string {
	t.Helper()
	var answer struct {
		Nodegroup struct {
			Tags map[string]string `json:"tags"`
		} `json:"nodegroup"`
	}
	_ = json.Unmarshal([]byte(look(emu, r, http.MethodGet, "/clusters/"+cluster+"/node-groups/"+name, "")), &answer) // there may be none
	return answer.Nodegroup.Tags
}

// xmlTags reads the tags of the one resource in an answer.
func xmlTags(text, key, value string) map[string]string {
	out := map[string]string{}
	between := func(s, name string) (string, string, bool) {
		_, rest, ok := strings.Cut(s, "<"+name+">")
		found, after, closed := strings.Cut(rest, "</"+name+">")
		return found, after, ok && closed
	}
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
