package importer

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// Choice selects the resources of a region to import. The zero value selects all.
type Choice struct {
	// Cluster limits the import to one cluster. A group in Groups whose tags name no cluster
	// belongs to it.
	Cluster string
	// Groups and Nodegroups are names. If either is set, nothing else is imported.
	Groups, Nodegroups []string
	// Templates lists names and ids of launch templates, Configurations names of launch configurations.
	// Groups and nodegroups that launch from one are selected too.
	Templates, Configurations []string
	// Tags lists tags that a resource must have, all of them.
	Tags map[string]string
}

// Of removes unselected resources from the state. It returns the selected names that are not in the state,
// as error messages name them.
func (c Choice) Of(s *observed.State) (missing []string) {
	named := len(c.Groups)+len(c.Nodegroups)+len(c.Templates)+len(c.Configurations) > 0
	for _, name := range c.Groups {
		if _, ok := s.Groups[name]; !ok {
			missing = append(missing, fmt.Sprintf("the group %q", name))
		}
	}
	for _, name := range c.Nodegroups {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(s.Nodegroups)), func(n observed.NodegroupName) bool { return c.names(n, name) }) {
			missing = append(missing, fmt.Sprintf("the nodegroup %q", name))
		}
	}
	maps.DeleteFunc(s.Groups, func(name string, g observed.Group) bool {
		tags := observed.GroupTagValues(g.Tags)
		if slices.Contains(c.Groups, name) {
			return !c.tagged(tags)
		}
		if named && c.launches(g.Template) || slices.Contains(c.Configurations, g.LaunchConfiguration) {
			return !c.tagged(tags) || c.Cluster != "" && !ofCluster(tags, c.Cluster)
		}
		return named || !c.tagged(tags) || c.Cluster != "" && !ofCluster(tags, c.Cluster)
	})
	maps.DeleteFunc(s.Nodegroups, func(name observed.NodegroupName, n observed.Nodegroup) bool {
		wanted := slices.ContainsFunc(c.Nodegroups, func(text string) bool { return c.names(name, text) }) || c.launches(n.Template)
		return named && !wanted || !c.tagged(n.Tags) || c.Cluster != "" && name.Cluster != c.Cluster
	})
	return missing
}

// launches reports whether a template was selected.
func (c Choice) launches(t observed.TemplateRef) bool {
	return slices.ContainsFunc(c.Templates, func(text string) bool { return text != "" && (text == t.ID || text == t.Name) })
}

// names reports whether a text names the nodegroup, with or without its cluster.
func (c Choice) names(n observed.NodegroupName, text string) bool {
	return (text == n.String() || text == n.Name) && (c.Cluster == "" || c.Cluster == n.Cluster)
}

func (c Choice) tagged(tags map[string]string) bool {
	for k, v := range c.Tags {
		if have, ok := tags[k]; !ok || have != v {
			return false
		}
	}
	return true
}

func ofCluster(tags map[string]string, cluster string) bool {
	_, capa := tags[observed.TagClusterPrefix+cluster]
	_, kubernetes := tags[tagKubernetes+cluster]
	return capa || kubernetes || tags[tagEKSCluster] == cluster
}
