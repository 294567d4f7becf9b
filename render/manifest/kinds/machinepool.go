package kinds

import "time"

// MachinePoolSpec is MachinePool.spec of Cluster API, in the versions v1alpha3
// to v1beta2.
type MachinePoolSpec struct {
	ClusterName     string              `json:"clusterName" check:"required,minlen=1"`
	Replicas        *int32              `json:"replicas" check:"min=0"`
	Template        MachineTemplateSpec `json:"template" check:"required"`
	MinReadySeconds int32               `json:"minReadySeconds" in:"v1alpha3,v1alpha4,v1beta1" check:"min=0"`
	ProviderIDList  Anything            `json:"providerIDList"`
	FailureDomains  []string            `json:"failureDomains"`
	Strategy        Anything            `json:"strategy" in:"v1alpha3"`
}

// MachineTemplateSpec is MachinePool.spec.template.
type MachineTemplateSpec struct {
	Metadata TemplateMeta `json:"metadata"`
	Spec     MachineSpec  `json:"spec" check:"required"`
}

// TemplateMeta is metadata for the machines of a pool. Nothing of it reaches AWS.
type TemplateMeta struct {
	Labels          map[string]string `json:"labels"`
	Annotations     map[string]string `json:"annotations"`
	Name            Anything          `json:"name" in:"v1alpha3"`
	GenerateName    Anything          `json:"generateName" in:"v1alpha3"`
	Namespace       Anything          `json:"namespace" in:"v1alpha3"`
	OwnerReferences Anything          `json:"ownerReferences" in:"v1alpha3"`
}

// MachineSpec is MachinePool.spec.template.spec.
type MachineSpec struct {
	ClusterName             string          `json:"clusterName" check:"required,minlen=1"`
	Bootstrap               Bootstrap       `json:"bootstrap" check:"required"`
	InfrastructureRef       ObjectReference `json:"infrastructureRef" check:"required"`
	Version                 string          `json:"version"`
	ProviderID              Anything        `json:"providerID"`
	FailureDomain           string          `json:"failureDomain"`
	MinReadySeconds         int32           `json:"minReadySeconds" in:"v1beta2"`
	ReadinessGates          []ReadinessGate `json:"readinessGates" in:"v1beta1,v1beta2"`
	Deletion                *Deletion       `json:"deletion" in:"v1beta2"`
	Taints                  []MachineTaint  `json:"taints" in:"v1beta1,v1beta2"`
	NodeDrainTimeout        *time.Duration  `json:"nodeDrainTimeout" in:"v1alpha3,v1alpha4,v1beta1"`
	NodeVolumeDetachTimeout *time.Duration  `json:"nodeVolumeDetachTimeout" in:"v1beta1"`
	NodeDeletionTimeout     *time.Duration  `json:"nodeDeletionTimeout" in:"v1beta1"`
}

// Bootstrap says where a pool's user data comes from. An empty DataSecretName
// that is written means that none is needed.
type Bootstrap struct {
	ConfigRef      *ObjectReference `json:"configRef"`
	DataSecretName *string          `json:"dataSecretName"`
	Data           *string          `json:"data" in:"v1alpha3"`
}

// ReadinessGate is one entry of readinessGates or availabilityGates.
type ReadinessGate struct {
	ConditionType string `json:"conditionType" check:"required"`
	Polarity      string `json:"polarity"`
}

// Deletion holds the timeouts of deletion, in seconds.
type Deletion struct {
	NodeDrainTimeoutSeconds        *int32 `json:"nodeDrainTimeoutSeconds"`
	NodeVolumeDetachTimeoutSeconds *int32 `json:"nodeVolumeDetachTimeoutSeconds"`
	NodeDeletionTimeoutSeconds     *int32 `json:"nodeDeletionTimeoutSeconds"`
}

// MachineTaint is a taint of Cluster API machines; pools may not have any.
type MachineTaint struct {
	Key         string `json:"key" check:"required"`
	Value       string `json:"value"`
	Effect      string `json:"effect" check:"required"`
	Propagation string `json:"propagation" check:"required"`
}

// ClusterSpec is Cluster.spec of Cluster API.
type ClusterSpec struct {
	Paused               bool             `json:"paused"`
	ClusterNetwork       *ClusterNetwork  `json:"clusterNetwork"`
	ControlPlaneEndpoint Endpoint         `json:"controlPlaneEndpoint"`
	ControlPlaneRef      *ObjectReference `json:"controlPlaneRef"`
	InfrastructureRef    *ObjectReference `json:"infrastructureRef"`
	Topology             *Anything        `json:"topology" in:"v1alpha4,v1beta1,v1beta2"`
	AvailabilityGates    []ReadinessGate  `json:"availabilityGates" in:"v1beta1,v1beta2"`
}

// ClusterNetwork is Cluster.spec.clusterNetwork.
type ClusterNetwork struct {
	APIServerPort *int32         `json:"apiServerPort" check:"min=0,max=65535"`
	Services      *NetworkRanges `json:"services"`
	Pods          *NetworkRanges `json:"pods"`
	ServiceDomain string         `json:"serviceDomain"`
}

// NetworkRanges is a list of CIDR blocks.
type NetworkRanges struct {
	CIDRBlocks []string `json:"cidrBlocks" check:"required"`
}
