// Package kinds defines the objects that weir reads: a Go type for each kind, decoding with
// defaults, the JSON Schemas of the same types, and an index of all objects of a render.
//
// A spec is a struct; its fields' tags contain the key, the versions that have it, the default and
// whether it is required. The oracle writes limits.txt, which has the limits of CAPA's schemas.
// Members of AWS's that PoolOptions sets are the intent's own structs, by their rows in
// render/field, so that no field is declared twice. The package also contains the parts of an
// object outside its spec that more than one package needs: annotations, the keys that name a
// launch template, Kubernetes versions, the names that CAPA makes.
//
// Nothing here checks two fields together; rules does.
package kinds

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/render/intent"
)

// API groups.
const (
	groupCluster        = "cluster.x-k8s.io"
	groupExpCluster     = "exp.cluster.x-k8s.io"
	GroupInfrastructure = "infrastructure.cluster.x-k8s.io"
	groupControlPlane   = "controlplane.cluster.x-k8s.io"
	groupBootstrap      = "bootstrap.cluster.x-k8s.io"
	GroupWeir           = "weir.dev"
)

// use says what weir does with a kind.
type use int

const (
	ignored  use = iota // not weir's
	read                // decoded, checked and used
	onDemand            // decoded where another object refers to it
	refused             // never accepted
	later               // known, not carried by this version
)

// kind is a kind that weir knows.
type kind struct {
	group, name string
	versions    []string
	use         use
	// object is the Go type of the whole object, nil for kinds that are not read.
	object reflect.Type
}

var betaVersions = []string{"v1beta1", "v1beta2"}

// known are all kinds that weir knows.
var known = sync.OnceValue(func() []kind {
	return []kind{
		{groupCluster, "MachinePool", betaVersions, read, reflect.TypeFor[Decoded[MachinePoolSpec]]()},
		{groupExpCluster, "MachinePool", []string{"v1alpha3", "v1alpha4"}, read, reflect.TypeFor[Decoded[MachinePoolSpec]]()},
		{groupCluster, "Cluster", betaVersions, read, reflect.TypeFor[Decoded[ClusterSpec]]()},
		{GroupInfrastructure, "AWSMachinePool", betaVersions, read, reflect.TypeFor[Decoded[AWSMachinePoolSpec]]()},
		{GroupInfrastructure, "AWSManagedMachinePool", betaVersions, read, reflect.TypeFor[Decoded[AWSManagedMachinePoolSpec]]()},
		{GroupInfrastructure, "AWSCluster", betaVersions, read, reflect.TypeFor[Decoded[AWSClusterSpec]]()},
		{GroupInfrastructure, "AWSManagedCluster", betaVersions, read, reflect.TypeFor[Decoded[AWSManagedClusterSpec]]()},
		{groupControlPlane, "AWSManagedControlPlane", betaVersions, read, reflect.TypeFor[Decoded[AWSManagedControlPlaneSpec]]()},
		{GroupInfrastructure, "AWSClusterRoleIdentity", betaVersions, read, reflect.TypeFor[Decoded[AWSClusterRoleIdentitySpec]]()},
		{GroupInfrastructure, "AWSClusterControllerIdentity", betaVersions, read, reflect.TypeFor[Decoded[AWSClusterControllerIdentitySpec]]()},
		{GroupInfrastructure, "AWSClusterStaticIdentity", betaVersions, refused, nil},
		{groupBootstrap, "KubeadmConfig", betaVersions, read, reflect.TypeFor[Decoded[KubeadmConfigSpec]]()},
		{groupBootstrap, "EKSConfig", betaVersions, read, reflect.TypeFor[Decoded[EKSConfigSpec]]()},
		{groupBootstrap, "NodeadmConfig", []string{"v1beta2"}, read, reflect.TypeFor[Decoded[NodeadmConfigSpec]]()},
		{"", "Secret", []string{"v1"}, onDemand, nil},
		{"", "ConfigMap", []string{"v1"}, onDemand, nil},
		{GroupInfrastructure, "AWSLaunchConfig", []string{"v1beta2"}, read, reflect.TypeFor[Decoded[LaunchTemplate]]()},
		{GroupInfrastructure, "AWSLaunchConfigTemplate", []string{"v1beta2"}, read, reflect.TypeFor[Decoded[AWSLaunchConfigTemplateSpec]]()},
		{GroupWeir, "FleetRollout", []string{"v1alpha1"}, read, reflect.TypeFor[Decoded[FleetRolloutSpec]]()},
		{GroupWeir, "PoolOptions", []string{"v1alpha1"}, read, reflect.TypeFor[Decoded[PoolOptionsSpec]]()},
	}
})

// findKind returns what weir knows about an object's kind; ok is false for a
// kind that is not weir's.
func findKind(known []kind, ref intent.ObjectRef) (kind, bool) {
	i := slices.IndexFunc(known, func(k kind) bool { return k.group == ref.Group() && k.name == ref.Kind })
	if i < 0 {
		return kind{}, false
	}
	return known[i], true
}

// Version returns the part of an apiVersion after the group.
func Version(apiVersion string) string {
	return apiVersion[strings.LastIndex(apiVersion, "/")+1:]
}

// Reads reports whether weir reads every object of a kind, so that its variables
// must all have values. Secrets and ConfigMaps are not among them: they hold
// scripts with ${…} of their own.
func Reads(ref intent.ObjectRef) bool {
	k, ok := findKind(known(), ref)
	return ok && k.use == read
}

// mayHoldSecrets are the kinds that user data is made of: secrets belong there, and weir
// shows nothing of these objects.
var mayHoldSecrets = []string{"KubeadmConfig", "EKSConfig", "NodeadmConfig", "Secret", "ConfigMap"}

// Plain reports whether weir reads an object and makes no user data of it: every user with read
// access to AWS can read its fields, and plans show them.
func Plain(ref intent.ObjectRef) bool {
	return !slices.Contains(mayHoldSecrets, ref.Kind) && Reads(ref)
}
