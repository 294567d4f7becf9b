package importer

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/lazyregexp"
)

// In EKS, Cluster API Provider AWS calls clusters and nodegroups without their own name NAMESPACE_NAME, and
// their launch templates CONTROL-PLANE-NAME. Their manifests then get the name NAME, so that weir gives the
// template its existing name.

// clusterName returns the name of a cluster's objects.
func clusterName(s observed.State, inAWS string) string {
	name, is := withoutNamespace(inAWS)
	if !is || !s.Clusters[inAWS] {
		return objectName(inAWS)
	}
	for other := range s.Clusters {
		if short, _ := withoutNamespace(other); other != inAWS && (short == name || objectName(other) == name) {
			return objectName(inAWS)
		}
	}
	return name
}

// poolName returns a name for a nodegroup's MachinePool, which may not be unique.
func poolName(s observed.State, n observed.Nodegroup) string {
	if name, is := withoutNamespace(n.Name); is && n.Template.Name == clusterName(s, n.Cluster)+"-"+name {
		return name
	}
	return objectName(n.Name)
}

// ownName returns the name that weir would give the launch template of a nodegroup's pool.
func ownName(s observed.State, n observed.Nodegroup) string {
	return clusterName(s, n.Cluster) + "-" + poolName(s, n)
}

// withoutNamespace returns the name after the namespace, if the text starts with a namespace.
func withoutNamespace(text string) (name string, is bool) {
	namespace, name, cut := strings.Cut(text, "_")
	return name, cut && namespace != "" && namespace == objectName(namespace) && name != "" && name == objectName(name)
}

// key returns a name for the MachinePool of a nodegroup: poolName, or the cluster's name and the nodegroup's
// own if poolName is not unique. So the name does not depend on the order of the nodegroups.
func (m *maker) key(n observed.Nodegroup) string {
	k := poolName(m.state, n)
	if m.taken[k] || m.called[k] > 1 {
		k = objectName(clusterName(m.state, n.Cluster) + "-" + n.Name)
	}
	for whole, i := k, 2; m.taken[k]; i++ {
		end := "-" + strconv.Itoa(i)
		k = strings.Trim(whole[:min(len(whole), 63-len(end))], "-.") + end
	}
	m.taken[k] = true
	return k
}

// groupKey returns the name for the MachinePool of a group: the group's own name if Kubernetes accepts it,
// else the closest valid name, with a hash. It depends on the group's name alone, so the result is the same
// in other imports.
func (m *maker) groupKey(name string) string {
	if isObjectName(name) {
		return name
	}
	end := "-" + content.ShortHash([]byte(name))[:6]
	base := strings.Trim(strings.ReplaceAll(objectName(name), ".", "-"), "-")
	k := strings.TrimRight(base[:min(len(base), 63-len(end))], "-") + end
	for salt := 1; m.taken[k] || m.called[k] > 0 || m.hasGroup(k); salt++ {
		k = strings.TrimSuffix(k, end)
		end = "-" + content.ShortHash([]byte(name), []byte(strconv.Itoa(salt)))[:6]
		k += end
	}
	return k
}

func (m *maker) hasGroup(name string) bool {
	_, ok := m.state.Groups[name]
	return ok
}

// isObjectName reports whether Kubernetes accepts a name for a MachinePool and as the value of a label.
func isObjectName(name string) bool { return len(name) <= 63 && dnsName.MatchString(name) }

// dnsName matches a DNS subdomain according to RFC 1123.
var dnsName = lazyregexp.New(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// objectName returns the closest name that Kubernetes accepts: lower case, with a dash for each other
// character, at most 63 characters, "x" if nothing is left. The caller must replace dots if the name may have
// several in a row, or a dot next to a dash.
func objectName(name string) string {
	out := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	return cmp.Or(strings.Trim(out[:min(len(out), 63)], "-."), "x")
}

// counted returns the number of nodegroups for each MachinePool name.
func counted(s observed.State) map[string]int {
	out := map[string]int{}
	for _, n := range s.Nodegroups {
		out[poolName(s, n)]++
	}
	return out
}
