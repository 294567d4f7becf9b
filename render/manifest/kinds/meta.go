package kinds

import "github.com/weir-gitops/weir/render/intent"

// Meta is metadata of an object. Members that a cluster adds to an exported object are
// accepted and ignored.
type Meta struct {
	Name                       string            `json:"name" check:"required"`
	Namespace                  string            `json:"namespace"`
	Labels                     map[string]string `json:"labels"`
	Annotations                map[string]string `json:"annotations"`
	GenerateName               Anything          `json:"generateName"`
	UID                        Anything          `json:"uid"`
	ResourceVersion            Anything          `json:"resourceVersion"`
	Generation                 Anything          `json:"generation"`
	SelfLink                   Anything          `json:"selfLink"`
	CreationTimestamp          Anything          `json:"creationTimestamp"`
	DeletionTimestamp          Anything          `json:"deletionTimestamp"`
	DeletionGracePeriodSeconds Anything          `json:"deletionGracePeriodSeconds"`
	OwnerReferences            Anything          `json:"ownerReferences"`
	Finalizers                 Anything          `json:"finalizers"`
	ManagedFields              Anything          `json:"managedFields"`
}

// head is the part of every object besides its spec. Status is ignored: manifests exported from a
// cluster carry it.
type head struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Meta     `json:"metadata" check:"required"`
	Status     Anything `json:"status"`
}

// Decoded is a decoded object of a kind with spec S.
type Decoded[S any] struct {
	head
	Spec S `json:"spec"`
	// Source is the object as rendered. Broken is true if decoding or a rule found an error; nothing is then
	// derived from the object.
	Source Object
	Broken bool
	// Unread are the fields that could not be decoded.
	Unread []intent.Path
}

// setDefaults fills in the defaults that are not in the tags of the spec's fields.
func (o *Decoded[S]) setDefaults(ref intent.ObjectRef) {
	if s, ok := any(&o.Spec).(defaulted); ok {
		s.setDefaults(ref)
	}
}

// ObjectReference points to another object of the same namespace. The members
// of version v1beta1 and of v1beta2 are both here.
type ObjectReference struct {
	APIVersion      string   `json:"apiVersion" in:"v1alpha3,v1alpha4,v1beta1"`
	APIGroup        string   `json:"apiGroup" in:"v1beta2" check:"required"`
	Kind            string   `json:"kind" check:"required,minlen=1"`
	Name            string   `json:"name" check:"required,minlen=1"`
	Namespace       string   `json:"namespace" in:"v1alpha3,v1alpha4,v1beta1"`
	UID             Anything `json:"uid" in:"v1alpha3,v1alpha4,v1beta1"`
	ResourceVersion Anything `json:"resourceVersion" in:"v1alpha3,v1alpha4,v1beta1"`
	FieldPath       Anything `json:"fieldPath" in:"v1alpha3,v1alpha4,v1beta1"`
}

// Endpoint is controlPlaneEndpoint.
type Endpoint struct {
	Host string `json:"host"`
	Port int32  `json:"port" check:"min=0,max=65535"`
}
