package probe

// How many names one call of a Prober takes.
// Assumed of AWS: full-filters.
const (
	NamesAtOnce        = filterValues
	TypesAtOnce        = typesBatch
	TargetGroupsAtOnce = targetsBatch
)
