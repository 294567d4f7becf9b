package sdk

import "context"

// Call is an operation of a service's client, held as a function. A client in a value's type
// would keep all of its several hundred operations in the binary, 40 MB of them. So each room
// lists the operations that it calls; a test sends every one of them through the fence.
type Call[In, Out, Options any] = func(context.Context, *In, ...func(*Options)) (*Out, error)
