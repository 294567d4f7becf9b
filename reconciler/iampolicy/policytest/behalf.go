package policytest

import (
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/weir-gitops/weir/reconciler/iampolicy"
)

// behalf returns the IAM checks that AWS makes because of a call, in addition to the check of the call
// itself.
func (c *call) behalf() (out []Asked) {
	switch c.service + ":" + c.does {
	case "ec2:CreateLaunchTemplate":
		out = append(out, c.also("ec2:CreateTags", c.arn("ec2", "launch-template/*"), with(c.requestTags(), "ec2:CreateAction", "CreateLaunchTemplate")))
	case "autoscaling:CreateAutoScalingGroup", "autoscaling:UpdateAutoScalingGroup", "autoscaling:StartInstanceRefresh":
		if c.form.Get("Preferences.AlarmSpecification.Alarms.member.1") != "" {
			out = append(out, c.also("cloudwatch:DescribeAlarms", c.arn("cloudwatch", "alarm:*"), nil))
		}
		for key := range c.form {
			if strings.HasSuffix(key, "LaunchTemplateId") || strings.HasSuffix(key, "LaunchTemplateName") {
				at, is := strings.TrimSuffix(strings.TrimSuffix(key, "Id"), "Name"), strings.TrimPrefix(key[strings.LastIndex(key, "LaunchTemplate"):], "LaunchTemplate")
				version := c.form.Get(strings.TrimSuffix(at, "LaunchTemplate") + "Version")
				out = append(out, c.launch("LaunchTemplate"+is, c.form.Get(key), version)...)
			}
		}
	case "autoscaling:PutLifecycleHook":
		if role := c.form.Get("RoleARN"); role != "" {
			out = append(out, c.pass(role, iampolicy.AutoScaling))
		}
	case "eks:CreateNodegroup":
		role, _ := c.members["nodeRole"].(string)
		name, _ := c.members["nodegroupName"].(string)
		out = append(out, c.pass(role, iampolicy.EKS), c.also("iam:GetRole", role, nil), c.also("iam:ListAttachedRolePolicies", role, nil),
			c.also("ec2:DescribeSubnets", "*", nil), c.also("eks:TagResource", c.arn("eks", "nodegroup/"+c.cluster+"/"+name+"/*"), c.requestTags()))
		out = append(out, c.nodegroupLaunch()...)
	case "eks:UpdateNodegroupVersion":
		out = append(out, c.nodegroupLaunch()...)
	case "ssm:PutParameter":
		if _, tagged := c.members["Tags"]; tagged {
			out = append(out, c.also("ssm:AddTagsToResource", c.arn("ssm", "parameter"+c.members["Name"].(string)), nil))
		}
	}
	return out
}

func (c *call) also(action, resource string, more map[string]string) Asked {
	context := map[string]string{"aws:RequestedRegion": c.region}
	maps.Copy(context, more)
	return Asked{Action: action, Resource: resource, Context: context, Behalf: true}
}

func with(m map[string]string, key, value string) map[string]string {
	m[key] = value
	return m
}

func (c *call) requestTags() map[string]string {
	out := map[string]string{}
	for k, v := range c.requested() {
		out["aws:RequestTag/"+k] = v
	}
	return out
}

func (c *call) pass(role, service string) Asked {
	return c.also("iam:PassRole", c.iamARN(role), map[string]string{"iam:PassedToService": service})
}

func (c *call) nodegroupLaunch() []Asked {
	template, _ := c.members["launchTemplate"].(map[string]any)
	id, _ := template["id"].(string)
	version, _ := template["version"].(string)
	if id == "" {
		return nil
	}
	return c.launch("LaunchTemplateId", id, version)
}

// launch returns AWS's IAM check about a caller that passes a launch template: may the caller
// launch from it? It is unknown whether AWS then fills the condition key with the template, so both
// must be allowed.
func (c *call) launch(key, template, version string) []Asked {
	text := c.query("ec2", http.MethodPost, "/", url.Values{"Action": {"DescribeLaunchTemplateVersions"}, "Version": {"2016-11-15"}, key: {template}, "LaunchTemplateVersion.1": {version}})
	id, _, ok := between(text, "launchTemplateId")
	if !ok {
		return nil // refused anyway
	}
	instance := c.arn("ec2", "instance/*")
	out := []Asked{
		c.also("ec2:RunInstances", instance, nil),
		c.also("ec2:RunInstances", instance, map[string]string{"ec2:LaunchTemplate": c.arn("ec2", "launch-template/"+id)}),
	}
	for _, kind := range []string{"instance", "volume", "network-interface", "spot-instances-request"} {
		if strings.Contains(text, "<resourceType>"+kind+"</resourceType>") {
			out = append(out, c.also("ec2:CreateTags", c.arn("ec2", kind+"/*"), map[string]string{"ec2:CreateAction": "RunInstances"}))
		}
	}
	if profile, _, ok := between(text, "iamInstanceProfile"); ok {
		name, _, _ := between(profile, "name")
		found := c.query("iam", http.MethodPost, "/", url.Values{"Action": {"GetInstanceProfile"}, "Version": {"2010-05-08"}, "InstanceProfileName": {name}})
		if role, _, ok := between(found, "RoleName"); ok {
			out = append(out, c.pass(role, iampolicy.EC2))
		}
	}
	return out
}
