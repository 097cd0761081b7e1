package checks

// driver.persistence: does the driver keep the cards initialised while nobody uses them?
//
//	on for every card                                  pass
//	off, but a display keeps the card in use           pass with a note
//	off                                                warn: each program waits for the cards to start, and limits are lost
//	not read                                           unknown
var driverPersistence = Check{ID: "driver.persistence", Title: "persistence mode", Decide: decidePersistence}

func decidePersistence(s Subject) []Finding {
	var off, shown, read int
	for _, c := range s.Cards {
		on, known := c.Persistence.Get()
		switch {
		case !known:
			continue
		case !on && c.Display.Value:
			shown++
		case !on:
			off++
		}
		read++
	}
	switch {
	case read == 0 || read < len(s.Cards) && off == 0:
		return []Finding{unknown(rigSubject, "persistence mode was not read").knownBy("give nvidia-smi -q, or a snapshot of the host")}
	case off > 0:
		f := warn(rigSubject, "persistence mode is off on %d of %d cards", off, read).saw("off", "on").because(ev(s.Cards[0].Persistence), ev(s.Host.Driver.Persistd)).
			fix("driver.persistence/off")
		if s.Host.Driver.Persistd.Value {
			f = f.noting("nvidia-persistenced runs, told not to set it")
		}
		return []Finding{f}
	case shown > 0:
		return []Finding{pass(rigSubject, "persistence mode is off, and a display keeps the driver loaded").because(ev(s.Cards[0].Persistence), ev(s.Cards[0].Display))}
	}
	return []Finding{pass(rigSubject, "persistence mode is on").saw("on", "on").because(ev(s.Cards[0].Persistence))}
}
