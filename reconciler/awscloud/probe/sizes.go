package probe

// The maximum numbers of names in one call of a Prober.
// Assumed of AWS: full-filters.
const (
	NamesAtOnce        = filterValues
	TypesAtOnce        = typesBatch
	TargetGroupsAtOnce = targetsBatch
)
