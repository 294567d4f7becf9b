package simulate

import (
	"encoding/xml"
	"net/url"
	"slices"
)

// group is what is looked at of one.
type group struct {
	Name      string `xml:"AutoScalingGroupName"`
	Max       int    `xml:"MaxSize"`
	Cooldown  int    `xml:"DefaultCooldown"`
	Version   string `xml:"LaunchTemplate>Version"`
	Template  string `xml:"LaunchTemplate>LaunchTemplateId"`
	Status    string // of what is being deleted
	Tags      []tag  `xml:"Tags>member"`
	Instances []struct {
		Type    string `xml:"InstanceType"`
		Version string `xml:"LaunchTemplate>Version"`
	} `xml:"Instances>member"`
}

type tag struct{ Key, Value string }

func value(tags []tag, key string) string {
	for _, t := range tags {
		if t.Key == key {
			return t.Value
		}
	}
	return ""
}

func (w *World) groups() map[string]group {
	byName := map[string]group{}
	for _, region := range w.regions() {
		w.groupsIn(region, byName)
	}
	return byName
}

// regions are those of targets.
func (w *World) regions() (out []string) {
	for _, t := range w.targets {
		if !slices.Contains(out, t.region) {
			out = append(out, t.region)
		}
	}
	return out
}

func (w *World) groupsIn(region string, byName map[string]group) {
	for next := "first"; next != ""; {
		form := url.Values{"Action": {"DescribeAutoScalingGroups"}, "MaxRecords": {"100"}}
		if next != "first" {
			form.Set("NextToken", next)
		}
		var out struct {
			Groups []group `xml:"DescribeAutoScalingGroupsResult>AutoScalingGroups>member"`
			Next   string  `xml:"DescribeAutoScalingGroupsResult>NextToken"`
		}
		if err := xml.Unmarshal([]byte(w.personIn(region, form)), &out); err != nil {
			w.t.Fatal(err)
		}
		for _, g := range out.Groups {
			byName[g.Name] = g
		}
		next = out.Next
	}
}

// template is what is looked at of one.
type template struct {
	ID   string
	Tags []tag
}

func (w *World) templates() map[string]template {
	byName := map[string]template{}
	for _, region := range w.regions() {
		w.templatesIn(region, byName)
	}
	return byName
}

func (w *World) templatesIn(region string, byName map[string]template) {
	var out struct {
		Templates []struct {
			ID   string `xml:"launchTemplateId"`
			Name string `xml:"launchTemplateName"`
			Tags []struct {
				Key   string `xml:"key"`
				Value string `xml:"value"`
			} `xml:"tagSet>item"`
		} `xml:"launchTemplates>item"`
	}
	if err := xml.Unmarshal([]byte(w.personIn(region, url.Values{"Action": {"DescribeLaunchTemplates"}, "MaxResults": {"200"}})), &out); err != nil {
		w.t.Fatal(err)
	}
	for _, t := range out.Templates {
		one := template{ID: t.ID}
		for _, in := range t.Tags {
			one.Tags = append(one.Tags, tag{in.Key, in.Value})
		}
		byName[t.Name] = one
	}
}
