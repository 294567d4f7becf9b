package kinds

// AWSClusterControllerIdentitySpec is the identity of the controller itself, without a role. It stands
// for weir's own credentials.
type AWSClusterControllerIdentitySpec struct {
	AllowedNamespaces *AllowedNamespaces `json:"allowedNamespaces"`
}

// AWSClusterRoleIdentitySpec is a role that weir assumes for a cluster.
type AWSClusterRoleIdentitySpec struct {
	AllowedNamespaces *AllowedNamespaces `json:"allowedNamespaces"`
	RoleARN           string             `json:"roleARN" check:"required,minlen=1"`
	SessionName       string             `json:"sessionName"`
	DurationSeconds   int32              `json:"durationSeconds"`
	InlinePolicy      string             `json:"inlinePolicy"`
	PolicyARNs        []string           `json:"policyARNs"`
	ExternalID        string             `json:"externalID"`
	SourceIdentityRef *IdentityReference `json:"sourceIdentityRef"`
}

// AllowedNamespaces says whose clusters may use an identity: nil nobody's, an
// empty one everybody's.
type AllowedNamespaces struct {
	List     []string      `json:"list"`
	Selector LabelSelector `json:"selector"`
}

// LabelSelector is Kubernetes' selector over labels.
type LabelSelector struct {
	MatchLabels      map[string]string  `json:"matchLabels"`
	MatchExpressions []LabelRequirement `json:"matchExpressions"`
}

// LabelRequirement is one expression of a LabelSelector.
type LabelRequirement struct {
	Key      string   `json:"key" check:"required"`
	Operator string   `json:"operator" check:"required" enum:"In|NotIn|Exists|DoesNotExist"`
	Values   []string `json:"values"`
}

// Allows reports whether the clusters of a namespace may use the identity. known is false if that depends on
// labels of the namespace, which weir cannot read.
func (a *AllowedNamespaces) Allows(namespace string) (allowed, known bool) {
	if a == nil {
		return false, true
	}
	for _, n := range a.List {
		if n == namespace {
			return true, true
		}
	}
	if len(a.Selector.MatchLabels)+len(a.Selector.MatchExpressions) > 0 {
		return false, false
	}
	return len(a.List) == 0, true
}
