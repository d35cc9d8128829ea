// Package everyday checks what programs on client-go do all the time.
package everyday

import (
	"context"
	"time"

	"holdfast.example/tests/clients/check"
)

// patience is how long something may take that must happen. It is only waited for where something
// is wrong.
const patience = 30 * time.Second

// Checks are all of them.
var Checks = []check.Check{
	{Name: "pages", Run: placed(pages)},
	{Name: "until", Run: placed(until)},
	{Name: "contention", Run: placed(contention)},
	{Name: "names", Run: placed(names)},
	{Name: "scale", Run: placed(scales)},
	{Name: "tokens", Run: placed(tokens)},
	{Name: "access", Run: placed(access)},
	{Name: "discovery", Run: placed(discover)},
	{Name: "events", Run: placed(events)},
}

// place is what each of these checks works with.
type place struct {
	*check.Place
}

func placed(do func(context.Context, *place) error) func(context.Context, *check.Run) error {
	return check.Placed(func(ctx context.Context, p *check.Place) error {
		return do(ctx, &place{p})
	})
}
